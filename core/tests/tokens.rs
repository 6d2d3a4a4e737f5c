//! The tokenizer against tiktoken-rs.

use offlock_core::Task;
use offlock_core::tokens::{self, Specials};
use tiktoken_rs::CoreBPE;

fn peers() -> [(&'static str, CoreBPE); 5] {
    [
        ("r50k_base", tiktoken_rs::r50k_base().unwrap()),
        ("p50k_base", tiktoken_rs::p50k_base().unwrap()),
        ("p50k_edit", tiktoken_rs::p50k_edit().unwrap()),
        ("cl100k_base", tiktoken_rs::cl100k_base().unwrap()),
        ("o200k_base", tiktoken_rs::o200k_base().unwrap()),
    ]
}

#[test]
fn texts_get_the_tokens_that_tiktoken_gives() {
    let texts = [
        "",
        "Hello, world!  It's   a\n\n  test\r\n\t of 12345 things… naïve Ünïcödé 你好世界 🦀",
        "<|endoftext|>a<|fim_prefix|>  <|endofprompt|>\n",
        "fn main() {\n    println!(\"{}\", x[1..=3]);\n}\n",
    ];
    for (name, peer) in peers() {
        let ours = tokens::get(name).unwrap();
        for text in texts {
            let encoded = ours.encode_ordinary(text, &Task::new()).unwrap();
            assert_eq!(encoded, peer.encode_ordinary(text), "{name} {text:?}");
            let special = ours.encode(text, Specials::All, &Task::new()).unwrap();
            assert_eq!(special, peer.encode_with_special_tokens(text), "{name} {text:?}");
            assert_eq!(ours.decode_bytes(&special, &Task::new()).unwrap(), text.as_bytes());
        }
    }
}

#[test]
fn every_token_has_the_bytes_that_tiktoken_gives_it() {
    for (name, peer) in peers() {
        let ours = tokens::get(name).unwrap();
        for token in 0..ours.n_vocab() as u32 + 10 {
            let expected = peer.decode_bytes(&[token]).ok();
            assert_eq!(ours.decode_single_token_bytes(token), expected.as_deref(), "{name} {token}");
        }
    }
}
