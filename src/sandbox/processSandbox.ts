/** The tiers of isolation, weakest first. */
export const tiers = ['process', 'namespace'] as const
export type Tier = (typeof tiers)[number]

/** The parameters of a child's start. The `Sandbox` decides how it is isolated. */
export interface Launch {
  readonly node: string
  /** Options of Node itself. */
  readonly nodeArgs: readonly string[]
  /** The module to start, in one of `dirs`. */
  readonly entry: string
  /** Real paths of the only directories of the host that the child may read. It may write none of them. */
  readonly dirs: readonly string[]
  /** Megabytes of writable memory. */
  readonly dataMb: number
  /** Whether the child has a user of its own, so that its processes can be counted. */
  readonly ownUser: boolean
  /** Added to the niceness of the service. The sum is at most 19. */
  readonly nicer: number
}

export interface Command {
  readonly args: readonly [string, ...string[]]
  /** Bytes that the command reads from fd 5. */
  readonly input?: Buffer
}

export interface Sandbox {
  readonly tier: Tier
  /** Returns the command that starts the child. */
  readonly start: (launch: Launch) => Command
}

/**
 * The tier for all systems: Node's permission model, resource limits, and functions that src/sandbox/child/confine.ts
 * takes away. `setpriv` may be missing.
 */
export const processSandbox = (setpriv: string | null = null): Sandbox => ({
  tier: 'process',
  start: (launch) => ({
    args: [
      ...endedWithParent(setpriv, ['--no-new-privs']),
      ...limited(launch),
      launch.node,
      ...nodeCommand(launch),
    ],
  }),
})

/** The kernel ends the command when the service ends. The signal is kept across `exec`. */
export const endedWithParent = (
  setpriv: string | null,
  options: readonly string[] = [],
): [string, ...string[]] | [] => (setpriv === null ? [] : [setpriv, '--pdeathsig', 'KILL', ...options, '--'])

/** Applies the resource limits, then executes the arguments that follow. */
export const limited = ({ dataMb, ownUser, nicer }: Launch): [string, ...string[]] => [
  '/bin/sh',
  '-c',
  LIMITED,
  String(process.pid),
  String(dataMb * 1024),
  ownUser ? String(MAX_THREADS) : '',
  String(nicer),
]

/** Threads and processes of a child with a user of its own. Node starts about ten. */
const MAX_THREADS = 64

/**
 * A system that lacks one of these limits still applies the others. The service may have ended before the kernel was
 * asked to end this process with it. The niceness is that of one thread, so it is set before there are others.
 */
const LIMITED = `[ "$PPID" = "$0" ] || exit 1
ulimit -c 0 2>/dev/null
ulimit -n 512 2>/dev/null
ulimit -f 524288 2>/dev/null
ulimit -d "$1" 2>/dev/null
[ -z "$2" ] || ulimit -u "$2" 2>/dev/null || ulimit -p "$2" 2>/dev/null
nicer=$3
shift 3
unset PWD OLDPWD
command -v nice >/dev/null && exec nice -n "$nicer" "$@"
exec "$@"`

/** The arguments of Node: the permission model and the module to start. */
export const nodeCommand = (
  { dirs, nodeArgs, entry }: Launch,
  writable: readonly string[] = [],
): string[] => [
  '--permission',
  ...[...dirs, ...writable].map((dir) => `--allow-fs-read=${dir}`),
  ...writable.map((dir) => `--allow-fs-write=${dir}`),
  ...nodeArgs,
  entry,
]

/**
 * Node options of every child. Warnings about experimental features would appear in the user's logs. The
 * child handles unhandled rejections itself; `strict` ends the process if that handler fails.
 */
export const nodeArgs = (heapMb: number): string[] => [
  `--max-old-space-size=${heapMb}`,
  '--disable-warning=ExperimentalWarning',
  '--unhandled-rejections=strict',
  '--v8-pool-size=1',
  '--disable-sigusr1', // the signal would open the inspector
  '--freeze-flags-after-init', // some flags make V8 write files
  '--no-experimental-sqlite', // SQLite opens files without the permission model
  '--no-experimental-webstorage', // it is based on SQLite
  '--no-experimental-ffi',
  '--no-addons',
  '--no-global-search-paths',
]
