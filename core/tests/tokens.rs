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

/// A vocabulary made against the hash of tokens of up to seven bytes: to give each a place near the one that
/// the hash says, a table of gigabytes would not do.
#[test]
fn tokens_whose_hashes_are_nearly_the_same_are_found() {
    const FACTOR: u64 = 0xb7e1_5162_8aed_2a6b;
    let inverse = (0..6)
        .fold(1_u64, |inverse, _| inverse.wrapping_mul(2_u64.wrapping_sub(FACTOR.wrapping_mul(inverse))));
    let lowest = 0xe0_u64.wrapping_mul(FACTOR) & 0xff;
    let colliding = (0..5000).map(|n: u64| {
        let key = (0x5ea5_1de5_0000_0000 | n << 8 | lowest).wrapping_mul(inverse);
        key.to_le_bytes()[1..].to_vec()
    });
    let bytes = (0..=255).map(|byte: u8| vec![byte]);
    let ranks: Vec<_> = bytes.chain(colliding).zip(0..).collect();
    let encoding = tokens::Encoding::new("colliding", r"\w+|\W+", ranks.clone(), [], &Task::new()).unwrap();
    for (token, rank) in &ranks {
        assert_eq!(encoding.encode_single_token(token), Some(*rank));
        assert_eq!(encoding.encode_single_piece(token, &Task::new()).as_deref(), Ok(&[*rank][..]));
    }
    let text = "a text with other words";
    let ids = encoding.encode_ordinary(text, &Task::new()).unwrap();
    assert_eq!(encoding.decode_bytes(&ids, &Task::new()).as_deref(), Ok(text.as_bytes()));
}
