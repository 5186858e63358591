/** The parameters of a child's start. The `Sandbox` decides how it is isolated. */
export interface Launch {
  readonly node: string
  /** Options of Node itself. */
  readonly nodeArgs: readonly string[]
  /** The module to start, in one of `dirs`. */
  readonly entry: string
  /** Real paths of the only directories that the child may read. It may write none. */
  readonly dirs: readonly string[]
  /** Megabytes of writable memory. */
  readonly dataMb: number
}

/** Returns the command line that starts the child. */
export type Sandbox = (launch: Launch) => readonly [string, ...string[]]

/**
 * The sandbox for all systems: Node's permission model and the shell's resource limits. It prevents access to
 * other files, child processes, worker threads, addons, the inspector, core dumps and excess memory. It does
 * not prevent network access or signals to processes of the same user, including the service. It stops
 * mistakes, not attackers: malicious code requires separate users and namespaces.
 */
export const processSandbox: Sandbox = ({ node, nodeArgs, entry, dirs, dataMb }) => [
  '/bin/sh',
  '-c',
  LIMITED,
  node,
  String(dataMb * 1024),
  '--permission',
  ...dirs.map((dir) => `--allow-fs-read=${dir}`),
  ...nodeArgs,
  entry,
]

/** A system that lacks one of these limits still applies the others. */
const LIMITED = `ulimit -c 0 2>/dev/null
ulimit -n 512 2>/dev/null
ulimit -f 524288 2>/dev/null
ulimit -d "$1" 2>/dev/null
shift
unset PWD OLDPWD
exec "$0" "$@"`

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
