"""LangChain's text splitters split texts by tokens."""

import tiktoken
from langchain_text_splitters import CharacterTextSplitter, RecursiveCharacterTextSplitter, TokenTextSplitter

TEXT = " ".join(f"Sentence {number} is about naïve foxes, 日本語 and dogs.\n\n" for number in range(200))


def main() -> None:
    encoding = tiktoken.get_encoding("o200k_base")
    splitter = TokenTextSplitter(encoding_name="o200k_base", chunk_size=50, chunk_overlap=10)
    chunks = splitter.split_text(TEXT)
    assert all(len(encoding.encode(chunk)) <= 51 for chunk in chunks)
    assert len(chunks) == -(-(len(encoding.encode(TEXT)) - 10) // 40)
    by_model = RecursiveCharacterTextSplitter.from_tiktoken_encoder(
        model_name="gpt-4o", chunk_size=60, chunk_overlap=0
    )
    parts = by_model.split_text(TEXT)
    assert "".join("".join(parts).split()) == "".join(TEXT.split())
    assert all(len(encoding.encode(part)) <= 60 for part in parts)
    by_encoding = CharacterTextSplitter.from_tiktoken_encoder(
        encoding_name="gpt2", chunk_size=100, chunk_overlap=0
    )
    assert len(by_encoding.split_text(TEXT)) > 10
