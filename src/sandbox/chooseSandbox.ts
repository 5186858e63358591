import type { ChildCode } from './childCode.ts'
import { startProcess } from './childProcess.ts'
import type { SandboxOptions } from './limits.ts'
import { librariesOf, namespaceSandbox } from './namespaceSandbox.ts'
import { processSandbox, type Sandbox, type Tier } from './processSandbox.ts'
import { refusalOfSetpriv } from './setpriv.ts'
import { executable } from './systemProgram.ts'
import { type Failure, LATE, type Patience, untilAnswered } from './untilAnswered.ts'

/** The tier in use and why, for `/readyz` and the log. */
export interface SandboxInfo {
  readonly tier: Tier
  readonly reason: string
}

export interface Chosen extends SandboxInfo {
  readonly sandbox: Sandbox
}

type Options = Omit<SandboxOptions, 'sandbox'>

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
  const { setpriv, lacking } = await findSetpriv(patience)
  let reason = 'SVC_SANDBOX=process'
  if (required !== 'process') {
    const found = await openNamespaces(setpriv, probe)
    if (typeof found !== 'string') {
      const started = 'a child started in namespaces of its own'
      return { tier: 'namespace', sandbox: found, reason: `${started}${lacking}` }
    }
    if (required === 'namespace') return found
    reason = `the namespace tier does not work: ${found}`
  }
  const sandbox = processSandbox(setpriv)
  const refusal = await untilAnswered(startIn('process'), probe, (ms) => failureOf(sandbox, probe, ms))
  return refusal ?? { tier: 'process', sandbox, reason: `${reason}${lacking}` }
}

/** Resolves with the path of a `setpriv` that works, and with the note that there is none on a system that has one. */
const findSetpriv = async (
  patience: Patience,
): Promise<{ readonly setpriv: string | null; readonly lacking: string }> => {
  if (process.platform !== 'linux') return { setpriv: null, lacking: '' }
  const setpriv = executable('setpriv')
  const refusal = setpriv === null ? 'it is not installed' : await refusalOfSetpriv(setpriv, patience)
  return refusal === null
    ? { setpriv, lacking: '' }
    : { setpriv: null, lacking: `; setpriv of util-linux does not work: ${refusal}` }
}

const startIn = (tier: Tier) => ({
  late: 'No child process became ready',
  refused: 'No child process could be started',
  where: ` in the ${tier} tier of the sandbox`,
})

/** Resolves with the reason why namespaces do not work here. */
const openNamespaces = async (setpriv: string | null, probe: Probe): Promise<Sandbox | string> => {
  if (process.platform !== 'linux') return 'it requires Linux'
  const bwrap = executable('bwrap')
  if (bwrap === null) return 'bubblewrap (bwrap) is not installed'
  let sandbox: Sandbox | undefined
  const refusal = await untilAnswered(startIn('namespace'), probe, async (ms) => {
    const limits = { ms, signal: probe.signal }
    const libraries = await librariesOf(probe.options.node, executable('ldd'), limits)
    if (typeof libraries !== 'object') return libraries
    sandbox = namespaceSandbox({ bwrap, setpriv, libraries })
    return failureOf(sandbox, probe, ms)
  })
  return refusal ?? sandbox ?? 'no child was started'
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
