"""httpx decompresses answers, with its blocking and its async client."""

import asyncio

import httpx
from serving import TEXT, server


async def get(address: str) -> str:
    async with httpx.AsyncClient() as client:
        return (await client.get(address)).text


def main() -> None:
    with server() as address:
        for path in ("/gzip", "/deflate"):
            assert httpx.get(address + path).text == TEXT
            assert asyncio.run(get(address + path)) == TEXT
        try:
            httpx.get(f"{address}/damaged")
        except httpx.DecodingError:
            return
    raise AssertionError("a damaged answer was read")
