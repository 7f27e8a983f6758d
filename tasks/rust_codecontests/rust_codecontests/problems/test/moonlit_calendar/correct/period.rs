// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let tokens: Vec<&str> = input.split_whitespace().collect();
    let num = |i: usize| -> usize { tokens[i].parse().unwrap() };
    let (m, w, a, b, l) = (num(0), num(1), num(2), num(3), num(4));
    let normal: Vec<usize> = (0..m).map(|i| num(5 + i)).collect();
    let mut longer = normal.clone();
    longer[l - 1] += 1;
    let mut years = a;
    while years % b != 0 {
        years += a;
    }
    let is_leap = |y: usize| y % a == 0 && y % b != 0;
    let length: usize = normal.iter().sum();
    let mut start = vec![0usize; years + 1];
    for y in 1..=years {
        start[y] = start[y - 1] + length + is_leap(y) as usize;
    }
    let era = start[years];
    let q = num(5 + m);
    let mut p = 6 + m;
    let mut out: Vec<String> = Vec::with_capacity(q);
    for _ in 0..q {
        if tokens[p] == "N" {
            let x = num(p + 1) - 1;
            p += 2;
            let rest = x % era;
            let index = start.partition_point(|&s| s <= rest) - 1;
            let year = x / era * years + index + 1;
            let months = if is_leap(year) { &longer } else { &normal };
            let mut day = rest - start[index];
            let mut month = 0;
            while day >= months[month] {
                day -= months[month];
                month += 1;
            }
            out.push(format!("{} {} {} {}", year, month + 1, day + 1, x % w + 1));
        } else {
            let (y, mo, d) = (num(p + 1), num(p + 2), num(p + 3));
            p += 4;
            let months = if is_leap(y) { &longer } else { &normal };
            if mo > m || d > months[mo - 1] {
                out.push("none".to_string());
            } else {
                let x = (y - 1) / years * era + start[(y - 1) % years] + months[..mo - 1].iter().sum::<usize>() + d;
                out.push(format!("{} {}", x, (x - 1) % w + 1));
            }
        }
    }
    println!("{}", out.join("\n"));
}
