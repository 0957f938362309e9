//! Certificate files that are valid, missing or too long.

use super::*;

#[test]
fn both_files_are_read_and_a_file_that_is_missing_or_too_long_is_named() {
    let folder = std::env::temp_dir().join(format!("quorate-pair-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    put("tls.crt", b"certificate");
    let missing = read(&folder).map(|_| ()).unwrap_err().to_string();
    assert!(missing.contains("tls.key"), "{missing}");
    put("tls.key", &vec![b'k'; 64 * 1024]);
    let pair = read(&folder).map_err(|error| error.to_string()).map(|pair| pair.key.len());
    assert_eq!(pair, Ok(64 * 1024));
    put("tls.key", &vec![b'k'; 64 * 1024 + 1]);
    let long = read(&folder).map(|_| ()).unwrap_err().to_string();
    assert!(long.contains("tls.key: it has more than 64 KiB"), "{long}");
    std::fs::remove_dir_all(&folder).unwrap();
}
