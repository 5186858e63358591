import { existsSync } from 'node:fs'
import { endedWithParent, limited, nodeCommand, type Sandbox } from './processSandbox.ts'
import { seccompFilter } from './seccomp.ts'
import { askProgram, type Limits } from './systemProgram.ts'
import type { Failure } from './untilAnswered.ts'

/** Bytes of the private `/tmp` of a child. */
const TMP_BYTES = 64 << 20

/** Node's path inside the namespace. */
const NODE = '/usr/bin/node'

/** The user inside the namespace: `nobody`. */
const NOBODY = '65534'

const DEVICES = ['null', 'zero', 'full', 'random', 'urandom'].map((name) => `/dev/${name}`)

/**
 * The tier of Linux with bubblewrap: namespaces of its own for users, processes, mounts, IPC, network and host name, and
 * a filter of system calls. The root contains only Node, its libraries, the build and the runtime.
 */
export const namespaceSandbox = ({
  bwrap,
  setpriv,
  libraries,
}: {
  readonly bwrap: string
  readonly setpriv: string | null
  readonly libraries: readonly string[]
}): Sandbox => {
  const filter = seccompFilter()
  return {
    tier: 'namespace',
    start: (launch) => ({
      args: [
        ...endedWithParent(setpriv),
        ...limited(launch),
        bwrap,
        ...NAMESPACES,
        ...(filter ? ['--seccomp', '5'] : []),
        ...libraries.flatMap((path) => ['--ro-bind', path, path]),
        '--ro-bind',
        launch.node,
        NODE,
        '--proc',
        '/proc',
        '--remount-ro', // settings of the kernel belong to its root user, who may also start the service
        '/proc',
        ...DEVICES.flatMap((path) => ['--dev-bind', path, path]),
        '--size',
        String(TMP_BYTES),
        '--tmpfs',
        '/tmp',
        ...launch.dirs.flatMap((path) => ['--ro-bind', path, path]), // after /tmp, which may contain them
        '--remount-ro',
        '/',
        '--chdir',
        launch.dirs[0] ?? '/',
        '--',
        NODE,
        ...nodeCommand(launch, ['/tmp']),
      ],
      ...(filter && { input: filter }),
    }),
  }
}

const NAMESPACES = [
  '--unshare-user',
  '--unshare-pid',
  '--unshare-ipc',
  '--unshare-net',
  '--unshare-uts',
  '--unshare-cgroup-try',
  '--disable-userns',
  '--die-with-parent',
  '--as-pid-1',
  '--cap-drop',
  'ALL',
  '--uid',
  NOBODY,
  '--gid',
  NOBODY,
  '--hostname',
  'svc',
]

const ALL_LIBRARIES = ['/lib', '/lib64', '/usr/lib']

/**
 * The files that Node is linked with, and the loader, by the paths at which the loader looks for them. `ldd` fails for a
 * Node that is not linked with any.
 */
export const librariesOf = async (
  node: string,
  ldd: string | null,
  limits: Limits,
): Promise<readonly string[] | Failure> => {
  if (ldd === null) return ALL_LIBRARIES.filter((path) => existsSync(path))
  const answer = await askProgram(ldd, [node], limits)
  if (typeof answer !== 'object') return answer
  return [...answer.stdout.matchAll(/^\s*(?:\S+ => )?(\/\S+) \(/gm)].map(([, path = '']) => path)
}
