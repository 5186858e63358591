/** What a child is started with; how it is fenced in is up to the `Sandbox`. */
export interface Launch {
  readonly node: string
  /** Options of Node itself. */
  readonly nodeArgs: readonly string[]
  /** Module the child begins with; lies in one of `dirs`. */
  readonly entry: string
  /** Real paths of the directories the child may read: nothing else is readable, nothing is writable. */
  readonly dirs: readonly string[]
  /** Megabytes of writable memory. */
  readonly dataMb: number
}

/** Turns a launch into the command that performs it, first word first. */
export type Sandbox = (launch: Launch) => readonly [string, ...string[]]

/**
 * The sandbox that works everywhere: Node's permission model and resource limits of the shell. It stops
 * reading and writing files outside, child processes, worker threads, addons, the inspector, core dumps,
 * and memory of any kind beyond the limits. It does not stop the network, nor signals to processes of the
 * same user, the service itself included, and Node promises no safety from code that means harm. So it
 * contains mistakes, not attackers: those need the sandbox of their own user and namespaces.
 */
export const processSandbox: Sandbox = ({ node, nodeArgs, entry, dirs, dataMb }) => [
  '/bin/sh',
  '-c',
  LIMITED,
  node,
  String(dataMb * 1024),
  '--permission',
  '--allow-net',
  ...dirs.map((dir) => `--allow-fs-read=${dir}`),
  ...nodeArgs,
  entry,
]

/** Each limit on its own line of defence: a system that lacks one still gets the others. */
const LIMITED = `ulimit -c 0 2>/dev/null
ulimit -n 512 2>/dev/null
ulimit -f 524288 2>/dev/null
ulimit -d "$1" 2>/dev/null
shift
unset PWD OLDPWD
exec "$0" "$@"`

/**
 * Options of Node for every child. Warnings about experimental features would land in the user's logs;
 * an unhandled rejection is dealt with by the child itself and strict should that fail.
 */
export const nodeArgs = (heapMb: number): string[] => [
  `--max-old-space-size=${heapMb}`,
  '--disable-warning=ExperimentalWarning',
  '--unhandled-rejections=strict',
  '--v8-pool-size=1',
]
