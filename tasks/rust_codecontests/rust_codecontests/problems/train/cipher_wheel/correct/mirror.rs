// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, BufRead};

struct Wheel {
    letters: Vec<u8>,
    first: usize,
    backwards: bool,
    shift: usize,
}

impl Wheel {
    fn place(&self, i: usize) -> usize {
        let n = self.letters.len();
        let i = if self.backwards { n - 1 - i } else { i };
        (self.first + i) % n
    }
    fn get(&self, i: usize) -> char {
        let stored = self.letters[self.place(i)] as usize;
        (b'a' + ((stored + self.shift) % 26) as u8) as char
    }
}

fn main() {
    let lines: Vec<String> = io::stdin().lock().lines().map(|l| l.unwrap()).collect();
    let mut wheel = Wheel {
        letters: lines[0].trim().bytes().map(|b| b - b'a').collect(),
        first: 0,
        backwards: false,
        shift: 0,
    };
    let n = wheel.letters.len();
    let q: usize = lines[1].trim().parse().unwrap();
    let mut read = String::new();
    for line in &lines[2..2 + q] {
        let parts: Vec<&str> = line.split_whitespace().collect();
        let number: usize = if parts.len() > 1 { parts[1].parse().unwrap() } else { 0 };
        match parts[0] {
            "L" if wheel.backwards => wheel.first = (wheel.first + n - number % n) % n,
            "L" => wheel.first = (wheel.first + number) % n,
            "R" => wheel.backwards = !wheel.backwards,
            "C" => wheel.shift = (wheel.shift + number) % 26,
            "S" => {
                let x = (parts[2].as_bytes()[0] - b'a') as usize;
                let p = wheel.place(number - 1);
                wheel.letters[p] = ((x + 26 - wheel.shift) % 26) as u8;
            }
            _ => read.push(wheel.get(number - 1)),
        }
    }
    println!("{}", read);
    println!("{}", (0..n).map(|i| wheel.get(i)).collect::<String>());
}
