"""Pillow writes and reads PNG files with compressed text."""

import io

from PIL import Image, PngImagePlugin


def main() -> None:
    image = Image.effect_mandelbrot((120, 80), (-2, -1, 1, 1), 50).convert("RGB")
    info = PngImagePlugin.PngInfo()
    info.add_text("Comment", "packed " * 100, zip=True)
    info.add_itxt("Title", "naïve " * 100, zip=True)
    file = io.BytesIO()
    image.save(file, "png", pnginfo=info, icc_profile=b"profile" * 50)
    file.seek(0)
    read = Image.open(file)
    read.load()
    assert isinstance(read, PngImagePlugin.PngImageFile)
    assert read.tobytes() == image.tobytes()
    assert read.text["Comment"] == "packed " * 100
    assert read.text["Title"] == "naïve " * 100
    assert read.info["icc_profile"] == b"profile" * 50
