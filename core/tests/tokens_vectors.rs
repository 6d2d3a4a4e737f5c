//! Runs the shared test vectors of `vectors/tokens`, which tiktoken wrote.

use offlock_core::Task;
use offlock_core::tokens::{self, Encoding, ErrorKind, Specials, Stream, TokenId, models};
use serde_json::Value;
use std::path::PathBuf;
use std::{fs, iter};

fn read(file: &str) -> String {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../vectors/tokens").join(file);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Calls `check` with every case of `file`, and makes sure that there are at least `least`.
fn each(file: &str, least: usize, check: impl Fn(&Value)) {
    let text = read(file);
    let cases = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let count = cases.inspect(check).count();
    assert!(count >= least, "{file} has only {count} cases");
}

fn encoding(case: &Value) -> &'static Encoding {
    tokens::get(case["encoding"].as_str().unwrap()).unwrap()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn number(value: &Value) -> TokenId {
    value.as_u64().unwrap().try_into().unwrap()
}

fn numbers(value: &Value) -> Vec<TokenId> {
    value.as_array().unwrap().iter().map(number).collect()
}

fn bytes(value: &Value) -> Vec<u8> {
    let digits = text(value).as_bytes().chunks(2);
    digits.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

fn crc(numbers: impl IntoIterator<Item = TokenId>) -> u64 {
    let bytes = numbers.into_iter().flat_map(TokenId::to_le_bytes);
    let step = |crc: u32, byte: u8| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ (0xedb8_8320 & (crc & 1).wrapping_neg()))
    };
    u64::from(!bytes.fold(!0, step))
}

/// Calls `check` with the special tokens that a case chooses.
fn chosen<T>(choice: &Value, check: impl FnOnce(Specials<'_>) -> T) -> T {
    if choice == "all" {
        return check(Specials::All);
    }
    let listed: Vec<_> = choice.as_array().unwrap().iter().map(text).collect();
    check(Specials::Only(&listed))
}

#[test]
fn encode() {
    each("encode.jsonl", 1500, |case| {
        let tokens = encoding(case).encode_ordinary(text(&case["text"]), &Task::new()).unwrap();
        assert_eq!(tokens, numbers(&case["tokens"]), "{case}");
    });
}

/// The tokens of a stream that gets `text` in pieces of `length` bytes.
fn streamed(encoding: &'static Encoding, text: &str, allowed: Specials<'_>, length: usize) -> Vec<TokenId> {
    let task = Task::new();
    let mut stream = Stream::of_encoding(encoding, allowed, None).unwrap();
    let pieces = text.as_bytes().chunks(length);
    let mut tokens: Vec<_> = pieces.flat_map(|piece| stream.feed(piece, &task).unwrap()).collect();
    tokens.extend(stream.finish(&task).unwrap());
    tokens
}

#[test]
fn encode_streams() {
    each("encode.jsonl", 1500, |case| {
        for length in [1, 2, 5, 64] {
            let tokens = streamed(encoding(case), text(&case["text"]), Specials::None, length);
            assert_eq!(tokens, numbers(&case["tokens"]), "{length} {case}");
        }
    });
}

#[test]
fn runs() {
    each("runs.jsonl", 100, |case| {
        let unit = |pair: &Value| text(&pair[0]).repeat(number(&pair[1]) as usize);
        let text: String = case["repeat"].as_array().unwrap().iter().map(unit).collect();
        let tokens = encoding(case).encode_ordinary(&text, &Task::new()).unwrap();
        match case["runs"].as_array() {
            Some(runs) => {
                let run = |pair: &Value| iter::repeat_n(number(&pair[0]), number(&pair[1]) as usize);
                assert_eq!(tokens, runs.iter().flat_map(run).collect::<Vec<_>>(), "{case}");
            }
            None => {
                assert_eq!(tokens.len(), number(&case["count"]) as usize, "{case}");
                assert_eq!(crc(tokens), case["crc"], "{case}");
            }
        }
    });
}

#[test]
fn code_points() {
    each("code_points.jsonl", 800, |case| {
        let characters = || (0..0x1000).filter_map(|offset| char::from_u32(number(&case["first"]) + offset));
        let templates = case["templates"].as_array().unwrap().iter().map(text);
        let texts = templates
            .flat_map(|template| characters().map(|c| template.replace("{0}", c.encode_utf8(&mut [0; 4]))));
        let encoding = encoding(case);
        let tokens = texts.flat_map(|text| encoding.encode_ordinary(&text, &Task::new()).unwrap());
        assert_eq!(crc(tokens), case["crc"], "{case}");
    });
}

fn found(encoding: &Encoding, text: &str, which: Specials<'_>) -> Option<(usize, String)> {
    let found = encoding.find_special(text, which, &Task::new()).unwrap();
    found.map(|(at, word)| (at, word.to_owned()))
}

#[test]
fn specials() {
    each("specials.jsonl", 400, |case| {
        let encoding = encoding(case);
        let given = text(&case["text"]);
        let refused = chosen(&case["disallowed"], |disallowed| match (disallowed, &case["allowed"]) {
            (Specials::All, allowed) if allowed == "all" => None,
            (Specials::All, allowed) => {
                let allowed: Vec<_> = allowed.as_array().unwrap().iter().map(text).collect();
                found(encoding, given, Specials::Except(&allowed))
            }
            (listed, _) => found(encoding, given, listed),
        });
        if let Some(error) = case.get("error") {
            let (at, word) = refused.unwrap_or_else(|| panic!("not refused: {case}"));
            assert_eq!(word, error["names"][0], "{case}");
            assert!(given[at..].starts_with(&word));
            return;
        }
        assert_eq!(refused, None, "{case}");
        let tokens = chosen(&case["allowed"], |allowed| encoding.encode(given, allowed, &Task::new()));
        assert_eq!(tokens.unwrap(), numbers(&case["tokens"]), "{case}");
        for length in [1, 3, 16] {
            let tokens = chosen(&case["allowed"], |allowed| streamed(encoding, given, allowed, length));
            assert_eq!(tokens, numbers(&case["tokens"]), "{length} {case}");
        }
    });
}

#[test]
fn decode() {
    each("decode.jsonl", 100, |case| {
        let encoding = encoding(case);
        let ids = numbers(&case["ids"]);
        let decoded = encoding.decode_bytes(&ids, &Task::new());
        if let Some(error) = case.get("error") {
            let ErrorKind::UnknownToken { token, index } = decoded.unwrap_err().kind else {
                panic!("another error: {case}")
            };
            assert_eq!(token.to_string(), error["names"][0], "{case}");
            assert_eq!(ids[index], token);
            return;
        }
        let decoded = decoded.unwrap();
        assert_eq!(decoded, bytes(&case["bytes"]), "{case}");
        assert_eq!(String::from_utf8_lossy(&decoded), text(&case["text"]), "{case}");
        let parts = ids.iter().map(|&token| encoding.decode_single_token_bytes(token).unwrap());
        let expected = case["parts"].as_array().unwrap().iter().map(bytes);
        assert_eq!(parts.collect::<Vec<_>>(), expected.collect::<Vec<_>>(), "{case}");
    });
}

#[test]
fn single_tokens() {
    each("single_tokens.jsonl", 60, |case| {
        let token = encoding(case).encode_single_token(&bytes(&case["bytes"]));
        assert_eq!(token, case.get("token").map(number), "{case}");
    });
}

#[test]
fn pieces() {
    each("pieces.jsonl", 20, |case| {
        let tokens = encoding(case).encode_single_piece(&bytes(&case["bytes"]), &Task::new()).unwrap();
        assert_eq!(tokens, numbers(&case["tokens"]), "{case}");
    });
}

#[test]
fn broken_utf8() {
    each("bytes.jsonl", 40, |case| {
        let tokens = encoding(case).encode_bytes(&bytes(&case["bytes"]), &Task::new()).unwrap();
        assert_eq!(tokens, numbers(&case["tokens"]), "{case}");
    });
}

#[test]
fn unstable() {
    each("unstable.jsonl", 40, |case| {
        let encoded =
            encoding(case).encode_with_unstable(text(&case["text"]), Specials::All, &Task::new()).unwrap();
        assert_eq!(encoded.0, numbers(&case["stable"]), "{case}");
        match case["completions"].as_array() {
            Some(ways) => assert_eq!(encoded.1, ways.iter().map(numbers).collect::<Vec<_>>(), "{case}"),
            None => {
                assert_eq!(encoded.1.len(), number(&case["count"]) as usize, "{case}");
                let all = encoded.1.into_iter().flat_map(|way| way.into_iter().chain([TokenId::MAX]));
                assert_eq!(crc(all), case["crc"], "{case}");
            }
        }
    });
}

#[test]
fn custom() {
    each("custom.jsonl", 60, |case| {
        let described = &case["custom"];
        let single = (0..=255).map(|byte: u8| (vec![byte], TokenId::from(byte)));
        let more = described["ranks"].as_object().unwrap().iter();
        let more = more.map(|(token, rank)| (bytes(&Value::from(token.as_str())), number(rank)));
        let specials = described["specials"].as_array().unwrap().iter();
        let specials = specials.map(|pair| (text(&pair[0]).to_owned(), number(&pair[1])));
        let encoding =
            Encoding::new("custom", text(&described["pattern"]), single.chain(more), specials, &Task::new())
                .unwrap();
        let tokens = chosen(&case["allowed"], |allowed| {
            encoding.encode(text(&case["text"]), allowed, &Task::new()).unwrap()
        });
        assert_eq!(tokens, numbers(&case["tokens"]), "{case}");
    });
}

#[test]
fn encodings() {
    each("encodings.jsonl", 7, |case| {
        let encoding = tokens::get(text(&case["name"])).unwrap();
        assert_eq!(encoding.name(), text(&case["name"]));
        assert_eq!(encoding.pattern(), text(&case["pattern"]), "{case}");
        assert_eq!(encoding.n_vocab(), number(&case["n_vocab"]) as usize, "{case}");
        assert_eq!(encoding.n_ranks(), number(&case["n_ranks"]) as usize, "{case}");
        assert_eq!(encoding.n_specials(), number(&case["specials"]) as usize, "{case}");
        assert_eq!(crc(listed(encoding.ranks())), case["ranks_crc"], "{case}");
        let specials = encoding.specials().map(|(text, token)| (text.as_bytes(), token));
        assert_eq!(crc(listed(specials)), case["specials_crc"], "{case}");
    });
    assert_eq!(read("encodings.jsonl").lines().count(), tokens::names().len());
}

/// The bytes and the number of every token, in the order of the bytes.
fn listed<'a>(tokens: impl Iterator<Item = (&'a [u8], TokenId)>) -> Vec<TokenId> {
    let mut tokens: Vec<_> = tokens.collect();
    tokens.sort_unstable();
    tokens
        .into_iter()
        .flat_map(|(bytes, token)| bytes.iter().map(|&byte| byte.into()).chain([token]))
        .collect()
}

#[test]
fn model_names() {
    let facts: Value = serde_json::from_str(&read("models.json")).unwrap();
    let known = facts["models"].as_object().unwrap();
    assert_eq!(known.len(), models::MODELS.len());
    for (model, name) in known {
        assert_eq!(models::encoding_name_for_model(model), name.as_str(), "{model}");
    }
    let prefixes = facts["prefixes"].as_array().unwrap().iter().map(|pair| (text(&pair[0]), text(&pair[1])));
    assert_eq!(prefixes.collect::<Vec<_>>(), models::PREFIXES);
    for model in facts["unknown"].as_array().unwrap().iter().map(text) {
        assert_eq!(models::encoding_name_for_model(model), None, "{model}");
    }
}
