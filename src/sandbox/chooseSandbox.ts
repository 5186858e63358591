import { spawnSync } from 'node:child_process'
import { accessSync, constants } from 'node:fs'
import { join } from 'node:path'
import { messageOf } from '../errors.ts'
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

/** A child that starts on a busy machine may take long; the service does not start without one. */
const PROBE_MS = 30_000

type Options = Omit<SandboxOptions, 'sandbox'>

interface Probe {
  readonly code: ChildCode
  readonly options: Options
  readonly probeMs: number
}

/**
 * Resolves with the strongest tier in which a child really starts, or with the required one. Resolves with the reason
 * as text if there is none.
 */
export const chooseSandbox = async (
  required: Tier | 'auto',
  code: ChildCode,
  options: Options,
  probeMs = PROBE_MS,
): Promise<Chosen | string> => {
  const setpriv = workingSetpriv()
  let reason = 'SVC_SANDBOX=process'
  if (required !== 'process') {
    const found = await openNamespaces(setpriv, { code, options, probeMs })
    if (typeof found !== 'string')
      return { tier: 'namespace', sandbox: found, reason: 'a child started in namespaces of its own' }
    if (required === 'namespace') return found
    reason = `the namespace tier does not work: ${found}`
  }
  const sandbox = processSandbox(setpriv)
  return (await failureOf(sandbox, { code, options, probeMs })) ?? { tier: 'process', sandbox, reason }
}

/** Resolves with the reason why namespaces do not work here. */
const openNamespaces = async (setpriv: string | null, probe: Probe): Promise<Sandbox | string> => {
  if (process.platform !== 'linux') return 'it requires Linux'
  const bwrap = executable('bwrap')
  if (bwrap === null) return 'bubblewrap (bwrap) is not installed'
  let libraries: readonly string[]
  try {
    libraries = librariesOf(probe.options.node, executable('ldd'))
  } catch (error) {
    return messageOf(error)
  }
  const sandbox = namespaceSandbox({ bwrap, setpriv, libraries })
  return (await failureOf(sandbox, probe)) ?? sandbox
}

/** Starts a child without a build. Resolves with the reason if it does not become ready. */
const failureOf = (sandbox: Sandbox, { code, options, probeMs }: Probe): Promise<string | null> =>
  new Promise((resolve) => {
    let ready = false
    let late: string | null = null
    const child = startProcess(
      { dir: code.dir, code, options: { ...options, sandbox } },
      {
        onFrame: () => {
          ready = true
          child.kill()
        },
        onEnd: ({ message, output }) => {
          clearTimeout(timer)
          resolve(ready ? null : (late ?? (firstLine(output) || message)))
        },
      },
    )
    const timer = setTimeout(() => {
      late = `no child became ready within ${probeMs / 1000} s`
      child.kill()
    }, probeMs)
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
