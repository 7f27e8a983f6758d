// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io::{self, Read};

fn gcd(mut a: usize, mut b: usize) -> usize {
    while b > 0 {
        let t = a % b;
        a = b;
        b = t;
    }
    a
}

fn table(a: &[usize], f: impl Fn(usize, usize) -> usize) -> Vec<Vec<usize>> {
    let mut t = vec![a.to_vec()];
    let mut half = 1;
    while half * 2 <= a.len() {
        let last = t.last().unwrap();
        let row = (0..=a.len() - half * 2).map(|i| f(last[i], last[i + half])).collect();
        t.push(row);
        half *= 2;
    }
    t
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let v: Vec<usize> = input.split_ascii_whitespace().map(|x| x.parse().unwrap()).collect();
    let (n, p) = (v[0], v[1]);
    let a = &v[2..2 + n];
    let ors = table(a, |x, y| x | y);
    let gcds = table(a, gcd);
    let mut answer = 0;
    for start in 0..n {
        let mut end = start;
        let (mut roar, mut hum) = (a[start], a[start]);
        while end < n {
            roar |= a[end];
            hum = gcd(hum, a[end]);
            let first = end;
            for k in (0..ors.len()).rev() {
                if end + (1 << k) <= n && ors[k][end] | roar == roar && gcds[k][end] % hum == 0 {
                    end += 1 << k;
                }
            }
            if (roar - hum) % p == 0 {
                answer += end - first;
            }
        }
    }
    println!("{}", answer);
}
