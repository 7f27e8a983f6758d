// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: remembers the parity after the first letter, so that its own vowel does not count.
use std::io::{self, Read};

fn is_vowel(letter: u8) -> bool {
    matches!(letter, b'a' | b'e' | b'i' | b'o' | b'u')
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let row = text.split_ascii_whitespace().nth(1).unwrap().as_bytes();
    let mut starts = [[0u64; 2]; 256];
    let mut parity = 0;
    let mut count = 0u64;
    for &letter in row {
        let before = parity;
        if is_vowel(letter) {
            parity ^= 1;
        }
        count += starts[letter as usize][parity];
        let _ = before;
        starts[letter as usize][parity] += 1;
    }
    println!("{}", count);
}
