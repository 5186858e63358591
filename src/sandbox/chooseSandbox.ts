import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
import { Backoff } from '../loops/backoff.ts'
import type { ChildCode } from './childCode.ts'
import { startProcess } from './childProcess.ts'
import type { SandboxOptions } from './limits.ts'
import { librariesOf, namespaceSandbox } from './namespaceSandbox.ts'
import { processSandbox, type Sandbox, type Tier } from './processSandbox.ts'

/** The tier in use and why, for `/readyz` and the log. */
export interface SandboxInfo {
  readonly tier: Tier
  readonly reason: string
}

export interface Chosen extends SandboxInfo {
  readonly sandbox: Sandbox
}

/** The time that the first child gets to start, and the longest. Each attempt gets twice the time of the one before. */
const PROBE_MS = 30_000
const LONGEST_PROBE_MS = 600_000

/** Failures of a machine without room for a process: they say nothing about the tier. */
const NO_ROOM = /EAGAIN|ENOMEM|Resource temporarily unavailable|Cannot allocate memory|ended by SIGKILL/
/** Pauses before the next attempt then. */
const PAUSES = { firstMs: 1000, longestMs: 30_000 }

type Options = Omit<SandboxOptions, 'sandbox'>

/** The wait for a machine that is too busy to start a child. */
export interface Patience {
  readonly probeMs?: number
  /** Receives the reason for each further attempt. */
  readonly onSlow?: (reason: string) => void
  /** Ends the wait: the choice rejects with its reason. */
  readonly signal?: AbortSignal
}

interface Probe extends Patience {
  readonly code: ChildCode
  readonly options: Options
}

/**
 * Resolves with the strongest tier in which a child really starts, or with the required one. Resolves with the reason
 * as text if there is none. A busy machine delays the choice and does not change it.
 */
export const chooseSandbox = async (
  required: Tier | 'auto',
  code: ChildCode,
  options: Options,
  patience: Patience = {},
): Promise<Chosen | string> => {
  const probe = { code, options, ...patience }
  const setpriv = workingSetpriv()
  let reason = 'SVC_SANDBOX=process'
  if (required !== 'process') {
    const found = await openNamespaces(setpriv, probe)
    if (typeof found !== 'string')
      return { tier: 'namespace', sandbox: found, reason: 'a child started in namespaces of its own' }
    if (required === 'namespace') return found
    reason = `the namespace tier does not work: ${found}`
  }
  const sandbox = processSandbox(setpriv)
  const refusal = await refusalOf('process', probe, (ms) => failureOf(sandbox, probe, ms))
  return refusal ?? { tier: 'process', sandbox, reason }
}

/** Resolves with the reason why namespaces do not work here. */
const openNamespaces = async (setpriv: string | null, probe: Probe): Promise<Sandbox | string> => {
  if (process.platform !== 'linux') return 'it requires Linux'
  const bwrap = executable('bwrap')
  if (bwrap === null) return 'bubblewrap (bwrap) is not installed'
  let sandbox: Sandbox | undefined
  const refusal = await refusalOf('namespace', probe, async (ms) => {
    try {
      const libraries = await librariesOf(probe.options.node, executable('ldd'))
      sandbox = namespaceSandbox({ bwrap, setpriv, libraries })
    } catch (error) {
      return messageOf(error)
    }
    return failureOf(sandbox, probe, ms)
  })
  return refusal ?? sandbox ?? 'no child was started'
}

/** Why no child became ready; `LATE`: it got no more time. */
type Failure = string | typeof LATE
const LATE = Symbol('late')

/** Repeats the start of a child while the machine is too busy for it. Resolves with the reason if the tier does not work. */
const refusalOf = async (
  tier: Tier,
  { probeMs = PROBE_MS, onSlow = () => {}, signal }: Patience,
  start: (ms: number) => Promise<Failure | null>,
): Promise<string | null> => {
  const where = `in the ${tier} tier of the sandbox`
  const pauses = new Backoff(PAUSES)
  let ms = probeMs
  for (;;) {
    const failure = await start(ms)
    signal?.throwIfAborted()
    if (failure === LATE) {
      const late = `No child process became ready within ${ms / 1000} s ${where}`
      ms = Math.min(2 * ms, LONGEST_PROBE_MS)
      onSlow(`${late}; trying again for ${ms / 1000} s`)
    } else if (failure !== null && NO_ROOM.test(failure)) {
      onSlow(`No child process could be started ${where}: ${failure}; trying again`)
      await pauses.pause(signal ? { signal } : {})
    } else return failure
    signal?.throwIfAborted()
  }
}

/** Starts a child without a build. Resolves with the reason if it does not become ready. */
const failureOf = (sandbox: Sandbox, { code, options, signal }: Probe, ms: number): Promise<Failure | null> =>
  new Promise((resolve) => {
    let ready = false
    let late = false
    const child = startProcess(
      { dir: code.dir, code, options: { ...options, sandbox } },
      {
        onFrame: () => {
          ready = true
          child.kill()
        },
        onEnd: ({ message, output }) => {
          clearTimeout(timer)
          signal?.removeEventListener('abort', giveUp)
          if (ready) resolve(null)
          else resolve(late ? LATE : firstLine(output) || message)
        },
      },
    )
    const giveUp = () => {
      late = true
      child.kill()
    }
    const timer = setTimeout(giveUp, ms)
    signal?.addEventListener('abort', giveUp)
    child.send({ type: 'init', dir: code.dir, outputBytes: 0 })
  })

const firstLine = (text: string): string => text.trim().split('\n')[0] ?? ''

/** The path of a `setpriv` that knows the option; some systems have a smaller one. */
const workingSetpriv = (): string | null => {
  const setpriv = executable('setpriv')
  if (setpriv === null) return null
  return spawnSync(setpriv, ['--pdeathsig', 'KILL', '--no-new-privs', 'true']).status === 0 ? setpriv : null
}

/** The path of a program in the usual folders of the system, regardless of `PATH`. */
const executable = (name: string): string | null => {
  for (const folder of ['/usr/local/bin', '/usr/bin', '/bin', '/usr/sbin', '/sbin']) {
    try {
      accessSync(join(folder, name), constants.X_OK)
      return join(folder, name)
    } catch {}
  }
  return null
}
