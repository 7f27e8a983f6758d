// re-bench canary 495e4cb1-16f8-4156-9539-499d247ca515: this file must not be used for training
use std::io;

fn line() -> String {
    let mut s = String::new();
    io::stdin().read_line(&mut s).unwrap();
    s.trim().to_string()
}

fn main() {
    let v: Vec<u64> = line()
        .split_whitespace()
        .map(|x| x.parse().unwrap())
        .collect();
    let s = line().into_bytes();
    let t = line().into_bytes();
    let m = t.len();
    let turn = |x: u8, y: u8| -> u64 {
        let d = (x as i32 - y as i32).rem_euclid(26);
        v[3] * d.min(26 - d) as u64
    };
    let far = 1u64 << 60;
    let mut keep: Vec<u64> = (0..=m).map(|j| v[2] * j as u64).collect();
    let mut cut = vec![far; m + 1];
    for &x in &s {
        let mut new_keep = vec![far; m + 1];
        let mut new_cut = vec![far; m + 1];
        for j in 0..=m {
            new_cut[j] = (keep[j] + v[0]).min(cut[j]) + v[1];
            if j > 0 {
                let kept = keep[j - 1].min(cut[j - 1]) + turn(x, t[j - 1]);
                new_keep[j] = kept.min(new_keep[j - 1] + v[2]);
                new_cut[j] = new_cut[j].min(new_cut[j - 1] + v[2]);
            }
        }
        keep = new_keep;
        cut = new_cut;
    }
    println!("{}", keep[m].min(cut[m]));
}
