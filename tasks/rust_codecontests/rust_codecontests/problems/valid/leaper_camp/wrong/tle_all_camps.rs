// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: tries all camps by recursion.
use std::io::{self, Read};

struct Meadow {
    squares: Vec<(i64, i64, i64)>,
    a: i64,
    b: i64,
}

impl Meadow {
    fn best(&self, at: usize, camp: &mut Vec<(i64, i64)>) -> i64 {
        if at == self.squares.len() {
            return 0;
        }
        let (r, c, value) = self.squares[at];
        let mut most = self.best(at + 1, camp);
        let free = camp.iter().all(|&(s, t)| {
            let d = ((r - s).abs(), (c - t).abs());
            d != (self.a, self.b) && d != (self.b, self.a)
        });
        if free {
            camp.push((r, c));
            most = most.max(value + self.best(at + 1, camp));
            camp.pop();
        }
        most
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let v: Vec<i64> = text.split_whitespace().map(|x| x.parse().unwrap()).collect();
    let w = v[1];
    let squares = v[4..]
        .iter()
        .enumerate()
        .filter(|(_, &value)| value > 0)
        .map(|(i, &value)| (i as i64 / w, i as i64 % w, value))
        .collect();
    let meadow = Meadow { squares, a: v[2], b: v[3] };
    println!("{}", meadow.best(0, &mut Vec::new()));
}
