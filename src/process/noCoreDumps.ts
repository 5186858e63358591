import { execFile } from 'node:child_process'

/** The environment of the service contains its secrets, so the command gets one of its own. */
const PATH = '/usr/local/bin:/usr/bin:/bin'

/**
 * Limits core dumps of this process and its children to 0 bytes, where `prlimit` is installed: a core dump would contain
 * the master key. Without it, the limit of the environment applies (docs/operations.md, Secrets).
 */
export const preventCoreDumps = (): void => {
  const limit = execFile('prlimit', ['--core=0:0', '--pid', String(process.pid)], { env: { PATH } }, () => {})
  limit.on('error', () => {}) // not installed
}
