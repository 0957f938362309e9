//! Certificate files that are valid, missing or too long.

use super::*;

#[test]
fn both_files_are_read_and_an_error_names_the_missing_or_oversized_file() {
    let folder = std::env::temp_dir().join(format!("quorate-cert-files-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let put = |name: &str, bytes: &[u8]| std::fs::write(folder.join(name), bytes).unwrap();
    put("tls.crt", b"certificate");
    let missing = read(&folder).map(|_| ()).unwrap_err().to_string();
    assert!(missing.contains("tls.key"), "{missing}");
    put("tls.key", &vec![b'k'; 64 * 1024]);
    let files = read(&folder).map_err(|error| error.to_string()).map(|files| files.key.len());
    assert_eq!(files, Ok(64 * 1024));
    put("tls.key", &vec![b'k'; 64 * 1024 + 1]);
    let long = read(&folder).map(|_| ()).unwrap_err().to_string();
    assert!(long.contains("tls.key: the file has more than 64 KiB"), "{long}");
    std::fs::remove_dir_all(&folder).unwrap();
}
