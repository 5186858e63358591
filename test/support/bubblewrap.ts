import { existsSync, readFileSync } from 'node:fs'

const BUBBLEWRAP = '/usr/bin/bwrap'

/** Whether tests can mount file systems of their own. */
export const hasBubblewrap = process.env['SVC_TEST_NAMESPACE'] === 'required' || existsSync(BUBBLEWRAP)

/** The start of a command that sees the whole machine, except for the given mounts. */
export const mounting = (...mounts: readonly string[]): readonly string[] => [
  BUBBLEWRAP,
  '--die-with-parent',
  '--dev-bind',
  '/',
  '/',
  ...mounts,
]

/** The process that bubblewrap has started. */
export const pidInside = (pid: number | undefined): number =>
  Number.parseInt(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8'))

/** A path as that process sees it, for this one. */
export const insideOf = (pid: number | undefined, path: string): string =>
  `/proc/${pidInside(pid)}/root${path}`
