//! Runs one program on one test after another inside its sandbox, and reports what each run used.
//!
//! `harness CONNECTION PROGRAM alone|shared`. The connection is `descriptor:N`, or the path of a socket; the first byte
//! on it says that the harness has started. `alone` says that all processes of this user, all of `/tmp` and all of
//! `/dev/shm` are the program's, so that what it leaves behind can be cleared away. Numbers on the socket are
//! little-endian. A request: CPU microseconds (u64), wall-clock milliseconds (u32), MiB of memory (u32), bytes of output
//! (u32), bytes of input (u64), input. A reply: wait status (i32), how it ended (u32, an `End`), CPU microseconds
//! (u64), microseconds from start to end without those in which it waited for a core (u64), peak of memory in KiB (u64),
//! bytes of stdout and of the end of stderr (u32 each), both.

use std::collections::HashMap;
use std::ffi::{c_int, c_long, OsString};
use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::fd::FromRawFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{id, Command};
use std::time::{Duration, Instant};

const PR_SET_DUMPABLE: c_int = 4;
const PR_SET_CHILD_SUBREAPER: c_int = 36;
const PIDFD_OPEN: c_long = 434; // the same on every architecture
const SIGKILL: c_int = 9;
const F_SETFD: c_int = 2;
const FD_CLOEXEC: c_int = 1;
const POLLIN: i16 = 1;
const CPU: c_int = 0;
const FSIZE: c_int = 1;
const DATA: c_int = 2;
const STACK: c_int = 3;
const STACK_BYTES: u64 = 64 << 20;
const STDERR_KEPT: u64 = 2048;
/// CPU time is looked at this often at most. The kernel's own limit is a second too coarse, and may come early.
const LOOK: Duration = Duration::from_millis(5);
/// And at least this often, since what a thread did between two looks is told from what it did at both.
const MAX_LOOK: Duration = Duration::from_millis(20);
const CPU_SLACK_S: u64 = 2;
/// The wall-clock limit is put off by the time that the program waited for a core, up to this many times the limit.
const PATIENCE: u32 = 8;

#[repr(C)]
struct Limit {
    soft: u64,
    hard: u64,
}

/// `struct rusage` of 64-bit Linux.
#[repr(C)]
#[derive(Default)]
struct Usage {
    user: [i64; 2],
    system: [i64; 2],
    peak_kib: i64,
    others: [i64; 13],
}

#[repr(C)]
struct Poll {
    descriptor: c_int,
    events: i16,
    found: i16,
}

extern "C" {
    fn prctl(option: c_int, ...) -> c_int;
    fn getrlimit(resource: c_int, limit: *mut Limit) -> c_int;
    fn setrlimit(resource: c_int, limit: *const Limit) -> c_int;
    fn wait4(pid: c_int, status: *mut c_int, options: c_int, usage: *mut Usage) -> c_int;
    fn poll(descriptors: *mut Poll, count: u64, milliseconds: c_int) -> c_int;
    fn clock_gettime(clock: c_int, time: *mut Time) -> c_int;
    fn syscall(number: c_long, ...) -> c_long;
    fn kill(pid: c_int, signal: c_int) -> c_int;
    fn setsid() -> c_int;
    fn geteuid() -> u32;
    fn close(descriptor: c_int) -> c_int;
    fn fcntl(descriptor: c_int, command: c_int, ...) -> c_int;
}

#[repr(C)]
#[derive(Default)]
struct Time {
    seconds: i64,
    nanoseconds: i64,
}

#[derive(Clone, Copy, Default)]
enum End {
    #[default]
    ByItself = 0,
    WallClock = 1,
    CpuTime = 2,
}

struct Request {
    cpu: Duration,
    wall: Duration,
    memory: u64,
    output: u64,
    input: Vec<u8>,
}

#[derive(Default)]
struct Report {
    status: c_int,
    end: End,
    cpu_us: u64,
    elapsed_us: u64,
    peak_kib: u64,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
}

fn main() -> io::Result<()> {
    let arguments: Vec<String> = std::env::args().collect();
    let alone = arguments[3] == "alone";
    // SAFETY: these calls only read their arguments.
    unsafe {
        // As root or beside others, to kill all and to clear all would reach far beyond the program. The first process
        // of a namespace is neither killed nor stopped by the program.
        assert!(!alone || (geteuid() != 0 && id() == 1), "not alone");
        assert_eq!(prctl(PR_SET_DUMPABLE, 0), 0);
        assert_eq!(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    }
    let mut judge = connect(&arguments[1])?;
    judge.write_all(b"+")?;
    let mounted = [entries("/tmp")?, entries("/dev/shm")?].concat();
    while let Some(request) = receive(&mut judge)? {
        let report = run(&arguments[2], &request, alone)?;
        send(&mut judge, &report)?;
        if alone {
            clear("/tmp", &mounted)?;
            clear("/dev/shm", &mounted)?;
        }
    }
    Ok(())
}

/// Returns the inherited connection `descriptor:N`, which programs do not inherit, or connects to a path.
fn connect(address: &str) -> io::Result<UnixStream> {
    let Some(number) = address.strip_prefix("descriptor:") else { return UnixStream::connect(address) };
    let descriptor: c_int = number.parse().expect("a number");
    // SAFETY: this process owns the descriptor, and nothing else uses it.
    unsafe {
        assert_eq!(fcntl(descriptor, F_SETFD, FD_CLOEXEC), 0);
        Ok(UnixStream::from_raw_fd(descriptor))
    }
}

/// Returns the next request, or nothing if the judge has no more.
fn receive(judge: &mut UnixStream) -> io::Result<Option<Request>> {
    let mut header = [0; 28];
    match judge.read_exact(&mut header) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        other => other?,
    }
    let word = |at: usize| u64::from(u32::from_le_bytes(header[at..at + 4].try_into().unwrap()));
    let long = |at: usize| u64::from_le_bytes(header[at..at + 8].try_into().unwrap());
    let mut input = vec![0; long(20) as usize];
    judge.read_exact(&mut input)?;
    let (cpu, wall) = (Duration::from_micros(long(0)), Duration::from_millis(word(8)));
    Ok(Some(Request { cpu, wall, memory: word(12) << 20, output: word(16), input }))
}

fn send(judge: &mut UnixStream, report: &Report) -> io::Result<()> {
    let mut reply = Vec::with_capacity(40 + report.stdout.len() + report.stderr.len());
    reply.extend(report.status.to_le_bytes());
    reply.extend((report.end as u32).to_le_bytes());
    reply.extend(report.cpu_us.to_le_bytes());
    reply.extend(report.elapsed_us.to_le_bytes());
    reply.extend(report.peak_kib.to_le_bytes());
    reply.extend((report.stdout.len() as u32).to_le_bytes());
    reply.extend((report.stderr.len() as u32).to_le_bytes());
    reply.extend(&report.stdout);
    reply.extend(&report.stderr);
    judge.write_all(&reply)
}

/// Runs the program to its end, and with it all that it has started.
fn run(program: &str, request: &Request, alone: bool) -> io::Result<Report> {
    let (mut input, mut output, mut error) = (scratch()?, scratch()?, scratch()?);
    input.write_all(&request.input)?;
    input.rewind()?;
    let cpu_s = request.cpu.as_secs() + CPU_SLACK_S;
    let bounds = [
        (CPU, cpu_s, cpu_s),
        (FSIZE, request.output, request.output),
        (DATA, request.memory, request.memory),
        (STACK, STACK_BYTES, STACK_BYTES),
    ];
    let mut command = Command::new(program);
    command.env_clear().current_dir("/tmp");
    command.stdin(input).stdout(output.try_clone()?).stderr(error.try_clone()?);
    // SAFETY: between fork and exec only system calls are made.
    unsafe {
        command.pre_exec(move || {
            setsid();
            bounds.iter().try_for_each(|&(resource, soft, hard)| limit(resource, soft, hard))
        });
    }
    let child = command.spawn()?.id() as c_int;
    let (end, elapsed) = wait_for_end(child, request, alone);
    // SAFETY: signals go to the program's processes alone; in a sandbox they are all that this user has.
    unsafe {
        kill(child, SIGKILL); // until it is waited for, no other process has its number
        kill(if alone { -1 } else { -child }, SIGKILL);
    }
    let mut report = Report { end, elapsed_us: elapsed.as_micros() as u64, ..Report::default() };
    reap(child, alone, &mut report);
    output.rewind()?;
    output.take(request.output).read_to_end(&mut report.stdout)?;
    let length = error.seek(SeekFrom::End(0))?;
    error.seek(SeekFrom::Start(length.saturating_sub(STDERR_KEPT)))?;
    error.take(STDERR_KEPT).read_to_end(&mut report.stderr)?;
    Ok(report)
}

/// Returns an empty file that has no name any more.
fn scratch() -> io::Result<File> {
    let path = format!("/tmp/judge-{}", id());
    let file = OpenOptions::new().read(true).write(true).create_new(true).open(&path)?;
    fs::remove_file(&path)?;
    Ok(file)
}

/// Sets a limit of this process, or as much of it as is allowed.
fn limit(resource: c_int, soft: u64, hard: u64) -> io::Result<()> {
    let mut limit = Limit { soft: 0, hard: 0 };
    // SAFETY: both calls use the one structure, which lives long enough.
    unsafe {
        if getrlimit(resource, &mut limit) == 0 {
            limit = Limit { soft: soft.min(limit.hard), hard: hard.min(limit.hard) };
            if setrlimit(resource, &limit) == 0 {
                return Ok(());
            }
        }
    }
    Err(io::Error::last_os_error())
}

/// Waits for the end of `child`, or until it has used up its time; returns how long that took, without the time in which
/// it waited for a core.
fn wait_for_end(child: c_int, request: &Request, alone: bool) -> (End, Duration) {
    let started = Instant::now();
    let usual = Priority::read(&fs::read_to_string("/proc/self/stat").unwrap_or_default());
    let mut waiting = Waiting { usual, ..Waiting::default() };
    // SAFETY: the descriptor is opened here, used here and closed here.
    unsafe {
        let descriptor = syscall(PIDFD_OPEN, child, 0) as c_int;
        assert!(descriptor >= 0, "pidfd_open");
        let mut look = LOOK;
        let end = loop {
            let mut event = Poll { descriptor, events: POLLIN, found: 0 };
            if poll(&mut event, 1, look.as_millis() as c_int) > 0 {
                break End::ByItself;
            }
            let spent = cpu_time(child, alone);
            if spent > request.cpu {
                break End::CpuTime;
            }
            waiting.look(child, started.elapsed().saturating_sub(spent));
            let wall = request.wall + waiting.time.min(request.wall * PATIENCE);
            if started.elapsed() > wall {
                break End::WallClock;
            }
            // Several threads may spend it faster than the clock goes.
            look = ((request.cpu - spent) / 4).min(wall.saturating_sub(started.elapsed())).clamp(LOOK, MAX_LOOK);
        };
        close(descriptor);
        waiting.look(child, Duration::ZERO);
        (end, started.elapsed().saturating_sub(waiting.time))
    }
}

/// Returns the CPU time of `child`, and of all other processes that the program has now where they can be told.
fn cpu_time(child: c_int, alone: bool) -> Duration {
    let mut sum = process_time(child);
    for entry in fs::read_dir("/proc").into_iter().flatten().flatten().filter(|_| alone) {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.parse().ok()).unwrap_or(child);
        if process != child && process != id() as c_int {
            sum += process_time(process);
        }
    }
    sum
}

fn process_time(process: c_int) -> Duration {
    let mut time = Time::default();
    // SAFETY: the structure is written to, and lives long enough. The clock is CPUCLOCK_SCHED of the process.
    let known = unsafe { clock_gettime((!process << 3) | 2, &mut time) } == 0;
    if known {
        Duration::new(time.seconds as u64, time.nanoseconds as u32)
    } else {
        Duration::ZERO
    }
}

/// How long a process was ready to run and did not.
#[derive(Default)]
struct Waiting {
    /// The priority that the program was started with, which is the judge's.
    usual: Option<Priority>,
    /// From look to look, that of the thread for which it is longest.
    time: Duration,
    /// Whether it has been seen to make way for others by its own will, after which nothing more counts.
    willing: bool,
    looked: Option<Instant>,
    threads: HashMap<OsString, Thread>,
}

/// What the kernel told of a thread.
#[derive(Default)]
struct Thread {
    ready: bool,
    ran: Duration,
    /// How long it waited for a core, but for a wait that has not ended.
    waited: Duration,
    /// The kernel's line of how often it has gone to sleep.
    slept: String,
}

impl Waiting {
    /// Looks at all threads; `otherwise` is the time where the kernel does not count it.
    fn look(&mut self, process: c_int, otherwise: Duration) {
        let now = Instant::now();
        let since = now - self.looked.replace(now).unwrap_or(now);
        let group = fs::read_to_string(format!("/proc/{process}/autogroup")).unwrap_or_default();
        self.willing |= !group.is_empty() && !group.trim_end().ends_with(" nice 0");
        let mut before = std::mem::take(&mut self.threads);
        let mut longest = None;
        for entry in fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten() {
            let read = |name| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
            let stat = read("stat");
            self.willing |= Priority::read(&stat).is_some_and(|priority| Some(priority) != self.usual);
            let Some(thread) = Thread::read(&stat, &read("schedstat"), &read("status")) else { continue };
            let earlier = before.remove(&entry.file_name()).unwrap_or_default();
            longest = longest.max(Some(thread.waited_since(&earlier, since)));
            self.threads.insert(entry.file_name(), thread);
        }
        if !self.willing {
            self.time = longest.map_or(self.time.max(otherwise), |time| self.time + time);
        }
    }
}

impl Thread {
    /// Reads the files of a thread; nothing where the kernel does not count.
    fn read(stat: &str, times: &str, status: &str) -> Option<Self> {
        let mut times = times.split_whitespace().map_while(|word| word.parse().ok()).map(Duration::from_nanos);
        let (ran, waited) = (times.next()?, times.next()?);
        let slept = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap_or("").to_owned();
        Some(Self { ready: stat.rsplit(')').next()?.starts_with(" R"), ran, waited, slept })
    }

    /// Returns how long it waited for a core after `earlier`, which was `since` ago.
    fn waited_since(&self, earlier: &Self, since: Duration) -> Duration {
        if self.ready && earlier.ready && self.slept == earlier.slept {
            // It was ready all the time, and the wait may go on; time that a virtual machine's host takes counts too.
            since.saturating_sub(self.ran.saturating_sub(earlier.ran))
        } else {
            self.waited.saturating_sub(earlier.waited)
        }
    }
}

/// How the kernel ranks a thread among others.
#[derive(PartialEq)]
struct Priority {
    nice: String,
    policy: String,
}

impl Priority {
    /// Reads it from the text of `/proc/PID/stat`; nothing where the thread is gone.
    fn read(stat: &str) -> Option<Self> {
        let fields: Vec<&str> = stat.rsplit(')').next()?.split_whitespace().collect();
        Some(Self { nice: fields.get(16)?.to_string(), policy: fields.get(38)?.to_string() })
    }
}

/// Waits for `child`, and for its orphans too where they are killed, and adds up what they used.
fn reap(child: c_int, alone: bool, report: &mut Report) {
    loop {
        let (mut status, mut usage) = (0, Usage::default());
        // SAFETY: both are written to, and live long enough.
        let ended = unsafe { wait4(if alone { -1 } else { child }, &mut status, 0, &mut usage) };
        if ended < 0 {
            if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted {
                continue;
            }
            return;
        }
        for [seconds, microseconds] in [usage.user, usage.system] {
            report.cpu_us += (seconds * 1_000_000 + microseconds) as u64;
        }
        report.peak_kib = report.peak_kib.max(usage.peak_kib as u64);
        if ended == child {
            report.status = status;
        }
    }
}

fn entries(directory: &str) -> io::Result<Vec<PathBuf>> {
    fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
}

/// Empties a directory but for what is to stay.
fn clear(directory: &str, stay: &[PathBuf]) -> io::Result<()> {
    for path in entries(directory)? {
        if stay.contains(&path) {
            continue;
        }
        if path.symlink_metadata()?.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    Ok(())
}
