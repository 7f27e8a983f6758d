// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: wants crew A to do the last batch.
use std::io::{self, Read};

#[derive(Clone, Copy)]
struct Line {
    slope: i64,
    height: i64,
}

impl Line {
    fn at(&self, x: i64) -> i128 {
        self.slope as i128 * x as i128 + self.height as i128
    }
}

/// The lowest of many lines at each of some places.
struct Lowest {
    places: Vec<i64>,
    best: Vec<Option<Line>>,
}

impl Lowest {
    fn new(places: &[i64]) -> Lowest {
        Lowest { places: places.to_vec(), best: vec![None; 4 * places.len()] }
    }

    fn add(&mut self, mut line: Line) {
        let (mut node, mut low, mut high) = (1, 0, self.places.len());
        loop {
            let middle = (low + high) / 2;
            let mut old = match self.best[node] {
                None => {
                    self.best[node] = Some(line);
                    return;
                }
                Some(old) => old,
            };
            if line.at(self.places[middle]) < old.at(self.places[middle]) {
                std::mem::swap(&mut line, &mut old);
                self.best[node] = Some(old);
            }
            if high - low == 1 {
                return;
            }
            if line.at(self.places[low]) < old.at(self.places[low]) {
                node = 2 * node;
                high = middle;
            } else {
                node = 2 * node + 1;
                low = middle;
            }
        }
    }

    fn least(&self, index: usize) -> Option<i64> {
        let (mut node, mut low, mut high) = (1, 0, self.places.len());
        let mut least: Option<i128> = None;
        loop {
            if let Some(line) = self.best[node] {
                let value = line.at(self.places[index]);
                least = Some(least.map_or(value, |l| l.min(value)));
            }
            if high - low == 1 {
                return least.map(|l| l as i64);
            }
            let middle = (low + high) / 2;
            if index < middle {
                node = 2 * node;
                high = middle;
            } else {
                node = 2 * node + 1;
                low = middle;
            }
        }
    }
}

fn main() {
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).unwrap();
    let mut numbers = text.split_ascii_whitespace().map(|word| word.parse::<i64>().unwrap());
    let n = numbers.next().unwrap() as usize;
    let price = [numbers.next().unwrap(), numbers.next().unwrap()];
    let mut places = vec![0i64];
    for gap in numbers {
        places.push(places[places.len() - 1] + gap);
    }
    let mut lowest = [Lowest::new(&places), Lowest::new(&places)];
    // What the lamps before this one cost, if the last of their batches is crew A's or B's; crew A begins.
    let mut before: [Option<i64>; 2] = [None, Some(0)];
    for lamp in 0..n {
        let x = places[lamp];
        for crew in 0..2 {
            if let Some(cost) = before[1 - crew] {
                lowest[crew].add(Line { slope: -2 * x, height: cost + price[crew] + x * x });
            }
        }
        for crew in 0..2 {
            before[crew] = lowest[crew].least(lamp).map(|l| l + x * x);
        }
    }
    println!("{}", before[0].unwrap());
}
