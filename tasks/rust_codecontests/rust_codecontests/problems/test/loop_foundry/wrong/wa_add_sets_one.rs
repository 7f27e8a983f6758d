// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
// Flaw: writes 1 into the matrix for add instead of adding 1, so add x x does not double the register.
use std::io::{self, Read};

const P: u64 = 1_000_000_007;

fn unit() -> Vec<Vec<u64>> {
    let mut m = vec![vec![0; 5]; 5];
    for i in 0..5 {
        m[i][i] = 1;
    }
    m
}

fn mul(a: &Vec<Vec<u64>>, b: &Vec<Vec<u64>>) -> Vec<Vec<u64>> {
    let mut c = vec![vec![0; 5]; 5];
    for i in 0..5 {
        for j in 0..5 {
            for k in 0..5 {
                c[i][j] = (c[i][j] + a[i][k] * b[k][j]) % P;
            }
        }
    }
    c
}

fn main() {
    let mut input = String::new();
    io::stdin().read_to_string(&mut input).unwrap();
    let mut it = input.split_whitespace();
    let n: usize = it.next().unwrap().parse().unwrap();
    let mut v: Vec<u64> = (0..4).map(|_| it.next().unwrap().parse().unwrap()).collect();
    v.push(1);
    let mut counts: Vec<u64> = Vec::new();
    let mut stack = vec![unit()];
    for _ in 0..n {
        let c = it.next().unwrap();
        match c {
            "loop" => {
                counts.push(it.next().unwrap().parse().unwrap());
                stack.push(unit());
            }
            "end" => {
                let mut base = stack.pop().unwrap();
                let mut k = counts.pop().unwrap();
                let mut top = stack.pop().unwrap();
                while k > 0 {
                    if k & 1 == 1 {
                        top = mul(&base, &top);
                    }
                    base = mul(&base, &base);
                    k >>= 1;
                }
                stack.push(top);
            }
            _ => {
                let x = (it.next().unwrap().as_bytes()[0] - b'a') as usize;
                let s = it.next().unwrap();
                let y = (s.as_bytes()[0].wrapping_sub(b'a')) as usize;
                let mut t = unit();
                match c {
                    "add" => t[x][y] = 1,
                    "swap" => t.swap(x, y),
                    "inc" => t[x][4] = s.parse().unwrap(),
                    "mul" => t[x][x] = s.parse().unwrap(),
                    _ => {
                        t[x][x] = 0;
                        t[x][4] = s.parse().unwrap();
                    }
                }
                let top = stack.pop().unwrap();
                stack.push(mul(&t, &top));
            }
        }
    }
    let out: Vec<String> = (0..4)
        .map(|i| (0..5).fold(0, |s, j| (s + stack[0][i][j] * v[j]) % P).to_string())
        .collect();
    println!("{}", out.join(" "));
}
