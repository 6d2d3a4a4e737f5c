"""aiohttp compresses as a server and decompresses as a client."""

import asyncio
import sys

import aiohttp
from aiohttp import web
from serving import TEXT, server


async def answer(request: web.Request) -> web.Response:
    response = web.Response(text=await request.text() or TEXT)
    response.enable_compression(web.ContentCoding[request.query["coding"]])
    return response


async def talk() -> None:
    app = web.Application()
    app.router.add_route("*", "/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    address = f"http://127.0.0.1:{runner.addresses[0][1]}/"
    async with aiohttp.ClientSession() as session:
        for coding in ("gzip", "deflate"):
            async with session.get(address, params={"coding": coding}) as got:
                assert got.headers["Content-Encoding"] == coding
                assert await got.text() == TEXT
            async with session.post(
                address, params={"coding": coding}, data=TEXT.encode(), compress=coding
            ) as got:
                assert await got.text() == TEXT
    await runner.cleanup()


async def read_damaged(address: str) -> None:
    async with aiohttp.ClientSession() as session, session.get(f"{address}/damaged") as got:
        await got.read()


def main() -> None:
    # aiohttp keeps a reference to the module in an object, which `offlock.replace` does not change.
    aiohttp.set_zlib_backend(sys.modules["zlib"])
    asyncio.run(talk())
    with server() as address:
        try:
            asyncio.run(read_damaged(address))
        except aiohttp.ClientPayloadError:
            return
    raise AssertionError("a damaged answer was read")
