// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::collections::HashMap;
use std::io;

fn main() {
    let mut line = String::new();
    io::stdin().read_line(&mut line).unwrap();
    line.clear();
    io::stdin().read_line(&mut line).unwrap();
    let mut vowels: u32 = 0;
    let mut seen: HashMap<(char, u32), u64> = HashMap::new();
    let mut total: u64 = 0;
    for c in line.trim().chars() {
        let own = if "aeiou".contains(c) { 1 } else { 0 };
        // The number of vowels after this letter must have the parity of those before the first one.
        if let Some(many) = seen.get(&(c, (vowels + own) % 2)) {
            total += many;
        }
        *seen.entry((c, vowels % 2)).or_insert(0) += 1;
        vowels += own;
    }
    println!("{total}");
}
