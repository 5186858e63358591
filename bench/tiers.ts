import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { readConfig } from '../src/process/config.ts'
import { openSandbox, type OpenedSandbox } from '../src/process/openSandbox.ts'
import { prepareChildCode } from '../src/sandbox/childCode.ts'
import { startProcess } from '../src/sandbox/childProcess.ts'
import { DEFAULT_OPTIONS } from '../src/sandbox/limits.ts'
import type { Tier } from '../src/sandbox/processSandbox.ts'
import type { Figure } from './figure.ts'
import { load, percentile } from './load.ts'
import { BenchServer } from './server.ts'
import { HOOK } from './webhook.ts'

const TIERS: readonly Tier[] = ['process', 'namespace']
const STARTS = 30
const ROUNDS = 10
const CALLS = 300

/** The tiers of the sandbox side by side: both are measured in turns, so that noise hits them alike. */
export const tiers = async (): Promise<Figure[]> => [...(await starts()), ...(await webhooks())]

/** From the start of a process to its readiness for runs. */
const starts = async (): Promise<Figure[]> => {
  const closings: (() => void)[] = []
  const dir = mkdtempSync(join(tmpdir(), 'bench-'))
  try {
    const opened = await Promise.all(
      TIERS.map((tier) => {
        const dataDir = join(dir, tier)
        mkdirSync(dataDir)
        return openSandbox({
          config: readConfig({ SVC_DATA_DIR: dataDir, SVC_SANDBOX: tier }),
          codeDir: null,
          logger: { info() {}, warn() {}, error() {} },
          onClose: (close) => closings.push(close),
        })
      }),
    )
    const took = await inTurns(STARTS, opened, timeOfStart)
    return sideBySide('start of a child', took, 25)
  } finally {
    for (const close of closings) close()
    rmSync(dir, { recursive: true, force: true })
  }
}

const timeOfStart = ({ codeDir, options }: OpenedSandbox): Promise<number> =>
  new Promise((resolve, reject) => {
    const code = prepareChildCode(codeDir)
    const began = performance.now()
    let took: number | undefined
    const child = startProcess(
      { dir: code.dir, code, options: { ...DEFAULT_OPTIONS, ...options } },
      {
        onFrame: () => {
          took = performance.now() - began
          child.kill()
        },
        onEnd: ({ message }) => (took === undefined ? reject(new Error(message)) : resolve(took)),
      },
    )
    child.send({ type: 'init', dir: code.dir, outputBytes: 0 })
  })

const webhooks = async (): Promise<Figure[]> => {
  const servers = await Promise.all(TIERS.map((tier) => BenchServer.start(undefined, { SVC_SANDBOX: tier })))
  try {
    const urls = await Promise.all(servers.map(async (server) => (await server.deploy(HOOK))['/hook'] ?? ''))
    const p50Of = async (url: string) => {
      const { p50, failed } = await load({ url, body: '{}', connections: 1, requests: CALLS })
      if (failed > 0) throw new Error(`${failed} calls failed`)
      return p50
    }
    await inTurns(5, urls, p50Of)
    return sideBySide('webhook round trip, 1 connection', await inTurns(ROUNDS, urls, p50Of), 0.1)
  } finally {
    for (const server of servers) await server.stop()
  }
}

/** Measures each subject `rounds` times, in turns; sorted times by subject. */
const inTurns = async <Subject>(
  rounds: number,
  subjects: readonly Subject[],
  measure: (subject: Subject) => Promise<number>,
): Promise<number[][]> => {
  const took = subjects.map((): number[] => [])
  for (let round = 0; round < rounds; round++)
    for (const [at, subject] of subjects.entries()) took[at]?.push(await measure(subject))
  return took.map((times) => times.sort((a, b) => a - b))
}

const sideBySide = (what: string, took: readonly number[][], atMost: number): Figure[] => {
  const [own, other] = took.map((times) => percentile(times, 0.5)) as [number, number]
  return [
    { what: `${what}, process tier, p50`, value: own, unit: 'ms' },
    { what: '  namespace tier', value: other, unit: 'ms' },
    { what: '  difference', value: other - own, unit: 'ms', atMost },
  ]
}
