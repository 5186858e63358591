/**
 * The filter of system calls for the namespace tier, as a classic BPF program (`man 2 seccomp`). It denies what a
 * function does not need and what attacks on the kernel begin with: tracing, mounts, new namespaces and processes,
 * keys, BPF, io_uring, sockets. Everything else is allowed, because Node uses many calls.
 */

type Architecture = 'x64' | 'arm64'

interface Calls {
  /** `AUDIT_ARCH_…` */
  readonly audit: number
  readonly clone: number
  readonly clone3: number
  readonly socket: number
  readonly ioctl: number
  readonly denied: readonly number[]
}

const EPERM = 1
const ENOSYS = 38
const EAFNOSUPPORT = 97

const ALLOW = 0x7fff_0000
const KILL = 0x8000_0000
const failWith = (errno: number): number => 0x0005_0000 | errno

/** Offsets in `struct seccomp_data`; of arguments, the lower half. */
const NUMBER = 0
const ARCHITECTURE = 4
const argument = (index: number): number => 16 + 8 * index

/** Calls from this number on are newer than this filter. */
const FIRST_UNKNOWN = 453

/** Calls with this bit use the x32 ABI, with other numbers. */
const X32 = 0x4000_0000

const CLONE_THREAD = 0x1_0000
/** `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID` and `NEWNET`. */
const CLONE_NEW = 0x7e02_0000

const AF_UNIX = 1
const TIOCSTI = 0x5412
const TIOCLINUX = 0x541c

/** The numbers of calls that are always denied: on x64, on arm64. */
const DENIED: Readonly<Record<string, readonly [x64: number | null, arm64: number | null]>> = {
  ptrace: [101, 117],
  process_vm_readv: [310, 270],
  process_vm_writev: [311, 271],
  process_madvise: [440, 440],
  kcmp: [312, 272],
  pidfd_getfd: [438, 438],
  bpf: [321, 280],
  perf_event_open: [298, 241],
  userfaultfd: [323, 282],
  io_uring_setup: [425, 425],
  io_uring_enter: [426, 426],
  io_uring_register: [427, 427],
  add_key: [248, 217],
  request_key: [249, 218],
  keyctl: [250, 219],
  mount: [165, 40],
  umount2: [166, 39],
  pivot_root: [155, 41],
  chroot: [161, 51],
  open_tree: [428, 428],
  move_mount: [429, 429],
  fsopen: [430, 430],
  fsconfig: [431, 431],
  fsmount: [432, 432],
  fspick: [433, 433],
  mount_setattr: [442, 442],
  unshare: [272, 97],
  setns: [308, 268],
  fork: [57, null],
  vfork: [58, null],
  execveat: [322, 281],
  memfd_create: [319, 279],
  memfd_secret: [447, 447],
  name_to_handle_at: [303, 264],
  open_by_handle_at: [304, 265],
  mknod: [133, null],
  mknodat: [259, 33],
  fanotify_init: [300, 262],
  kexec_load: [246, 104],
  kexec_file_load: [320, 294],
  init_module: [175, 105],
  finit_module: [313, 273],
  delete_module: [176, 106],
  personality: [135, 92],
  modify_ldt: [154, null],
  iopl: [172, null],
  ioperm: [173, null],
  migrate_pages: [256, 238],
  move_pages: [279, 239],
  swapon: [167, 224],
  swapoff: [168, 225],
  reboot: [169, 142],
  acct: [163, 89],
  quotactl: [179, 60],
  quotactl_fd: [443, 443],
  syslog: [103, 116],
  settimeofday: [164, 170],
  clock_settime: [227, 112],
  clock_adjtime: [305, 266],
  adjtimex: [159, 171],
  sethostname: [170, 161],
  setdomainname: [171, 162],
  lookup_dcookie: [212, 18],
  vhangup: [153, 58],
  uselib: [134, null],
  ustat: [136, null],
  sysfs: [139, null],
}

const deniedOn = (column: 0 | 1): number[] =>
  Object.values(DENIED).flatMap((numbers) => numbers[column] ?? [])

const CALLS: Readonly<Record<Architecture, Calls>> = {
  x64: { audit: 0xc000_003e, clone: 56, clone3: 435, socket: 41, ioctl: 16, denied: deniedOn(0) },
  arm64: { audit: 0xc000_00b7, clone: 220, clone3: 435, socket: 198, ioctl: 29, denied: deniedOn(1) },
}

type Instruction = readonly [code: number, jumpIfTrue: number, jumpIfFalse: number, value: number]

const load = (offset: number): Instruction => [0x20, 0, 0, offset]
const and = (mask: number): Instruction => [0x54, 0, 0, mask]
const end = (action: number): Instruction => [0x06, 0, 0, action]
/** The next instruction is executed if the comparison is true, and skipped otherwise. */
const ifEqual = (value: number): Instruction => [0x15, 0, 1, value]
const ifUnequal = (value: number): Instruction => [0x15, 1, 0, value]
const ifAtLeast = (value: number): Instruction => [0x35, 0, 1, value]

/** Instructions that are executed for one call only, and end the program. */
const onCall = (number: number, body: readonly Instruction[]): Instruction[] => [
  [0x15, 0, body.length, number],
  ...body,
]

/** The filter for `bwrap --seccomp`; null on other architectures. */
export const seccompFilter = (architecture: string = process.arch): Buffer | null =>
  architecture === 'x64' || architecture === 'arm64' ? assembled(programOf(CALLS[architecture])) : null

const programOf = ({ audit, clone, clone3, socket, ioctl, denied }: Calls): Instruction[] => [
  load(ARCHITECTURE),
  ifUnequal(audit),
  end(KILL),
  load(NUMBER),
  ifAtLeast(X32),
  end(KILL),
  ifAtLeast(FIRST_UNKNOWN),
  end(failWith(ENOSYS)),
  ...denied.flatMap((number) => [ifEqual(number), end(failWith(EPERM))]),
  // A filter cannot read the flags of clone3; libc then uses clone.
  ifEqual(clone3),
  end(failWith(ENOSYS)),
  ...onCall(clone, [
    load(argument(0)),
    and(CLONE_THREAD | CLONE_NEW),
    ifEqual(CLONE_THREAD),
    end(ALLOW),
    end(failWith(EPERM)),
  ]),
  ...onCall(socket, [load(argument(0)), ifEqual(AF_UNIX), end(ALLOW), end(failWith(EAFNOSUPPORT))]),
  ...onCall(ioctl, [
    load(argument(1)),
    ifEqual(TIOCSTI),
    end(failWith(EPERM)),
    ifEqual(TIOCLINUX),
    end(failWith(EPERM)),
    end(ALLOW),
  ]),
  end(ALLOW),
]

const assembled = (program: readonly Instruction[]): Buffer => {
  const bytes = Buffer.alloc(program.length * 8)
  program.forEach(([code, jumpIfTrue, jumpIfFalse, value], index) => {
    let at = bytes.writeUInt16LE(code, index * 8)
    at = bytes.writeUInt8(jumpIfTrue, at)
    at = bytes.writeUInt8(jumpIfFalse, at)
    bytes.writeUInt32LE(value >>> 0, at)
  })
  return bytes
}
