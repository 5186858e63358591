import { readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { RunError } from '../../src/events/run.ts'
import { RawJson } from '../../src/events/rawJson.ts'
import { Readable } from 'node:stream'
import { newId } from '../../src/ids.ts'
import { AppError } from '../../src/errors.ts'
import type { Blobs } from '../../src/ports/blobs.ts'
import { openRuntime } from '../../src/builds/openRuntime.ts'
import { prepareChildCode } from '../../src/sandbox/childCode.ts'
import { chooseSandbox } from '../../src/sandbox/chooseSandbox.ts'
import { DEFAULT_OPTIONS, type SandboxOptions } from '../../src/sandbox/limits.ts'
import type { Sandbox, Tier } from '../../src/sandbox/processSandbox.ts'
import type {
  Input,
  Inspection,
  Invocation,
  LaneRef,
  Outcome,
  RunInfo,
  Runtime,
} from '../../src/ports/runtime.ts'
import { tempDir } from '../support/tempDir.ts'
import { zipBuild, zipDir, type ZippedBuild } from '../support/zipBuild.ts'

export const FIXTURES = new URL('../fixtures/functions/', import.meta.url).pathname

/** Just enough of blobs to fetch builds from; `gets` counts the fetches. */
export const buildBlobs = (): Blobs & { gets: number; add(build: ZippedBuild): void } => {
  const held = new Map<string, Buffer>()
  const unused = () => Promise.reject(new Error('Expected builds to be fetched only'))
  // oxlint-disable-next-line require-yield
  const unlisted = async function* () {
    throw new Error('Expected builds to be fetched only')
  }
  const blobs = {
    backend: 'memory',
    gets: 0,
    add: ({ bytes, hash }: ZippedBuild) => void held.set(`builds/${hash}.zip`, bytes),
    get: async (key: string) => {
      const bytes = held.get(key)
      if (!bytes) throw new AppError('not_found', `Expected a blob ${key}, got none`)
      blobs.gets++
      return Readable.from([bytes])
    },
    put: unused,
    head: unused,
    remove: unused,
    list: unlisted,
    createUpload: unused,
    putPart: unused,
    completeUpload: unused,
    listParts: unlisted,
    abortUpload: unused,
    listUploads: unlisted,
    close: async () => {},
  }
  return blobs
}

export interface Asked extends Partial<Omit<Invocation, 'target' | 'run'>> {
  readonly input?: Input
  readonly args?: readonly unknown[]
  readonly run?: Partial<RunInfo>
}

export interface Workbench {
  readonly runtime: Runtime
  readonly build: LaneRef
  readonly cacheDir: string
  /** Inspects the build as an upload. */
  readonly inspect: (signal?: AbortSignal) => Promise<Inspection>
  /** Runs `ns/var` of the build, or a piece of code. */
  readonly invoke: (target: string | Invocation['target'], asked?: Asked) => Promise<Outcome>
  /** The error of a run that must fail. */
  readonly failure: (target: string, asked?: Asked) => Promise<RunError>
}

/** Short times, so that tests of what takes long are short. */
const IMPATIENT: Partial<SandboxOptions> = {
  tickMs: 10,
  pingMs: 50,
  heartbeatMs: 600,
  graceMs: 200,
  backoffMs: 10,
}

/** The tier that these tests run in. `npm test` runs them in each one that this machine has. */
export const TIER: Tier = process.env['SVC_TEST_SANDBOX'] === 'namespace' ? 'namespace' : 'process'
let inTier: Promise<Sandbox> | undefined

const sandboxOf = async (tier: Tier): Promise<Sandbox> => {
  const chosen = await chooseSandbox(tier, prepareChildCode(tempDir()), DEFAULT_OPTIONS)
  if (typeof chosen === 'string') throw new Error(`Expected the ${tier} tier to work, got: ${chosen}`)
  return chosen.sandbox
}

/** A runtime on one build: the name of a fixture directory, or files by path. */
export const openWorkbench = async (
  source: string | Readonly<Record<string, string>>,
  options: Partial<SandboxOptions> = {},
): Promise<Workbench> => {
  const zipped = typeof source === 'string' ? await zipDir(`${FIXTURES}${source}`) : await zipBuild(source)
  const blobs = buildBlobs()
  blobs.add(zipped)
  const cacheDir = tempDir()
  const sandbox = await (inTier ??= sandboxOf(TIER))
  const runtime = openRuntime({ blobs, cacheDir, sandbox, ...IMPATIENT, ...options })
  const build: LaneRef = {
    org_id: newId(),
    env_id: newId(),
    project_id: newId(),
    build_id: newId(),
    hash: zipped.hash,
    rights: {},
  }
  const inspect: Workbench['inspect'] = (signal) => {
    const file = join(tempDir(), 'upload.zip')
    writeFileSync(file, zipped.bytes)
    return runtime.inspect(build, { file, signal })
  }
  const invoke: Workbench['invoke'] = (target, { args = [], run, input, ...asked } = {}) =>
    runtime.invoke({
      build,
      run: { ...runInfo(), ...run },
      target: typeof target === 'string' ? targetOf(target) : target,
      loadInput: () => Promise.resolve(input ?? { kind: 'args', args }),
      timeoutMs: 60_000,
      signal: new AbortController().signal,
      onHostCall: () => Promise.resolve(null),
      onLog: () => {},
      ...asked,
    })
  const failure: Workbench['failure'] = async (target, asked) => {
    const outcome = await invoke(target, asked)
    if (outcome.status === 'failed') return outcome.error
    throw new Error(`Expected ${target} to fail, got ${JSON.stringify(outcome)}`)
  }
  return { runtime, build, cacheDir, inspect, invoke, failure }
}

/** The result of a run that must succeed. */
export const resultOf = async (outcome: Promise<Outcome>): Promise<unknown> => {
  const ended = await outcome
  if (ended.status === 'succeeded')
    return ended.result instanceof RawJson ? ended.result.parse() : ended.result
  throw new Error(`Expected a result, got ${JSON.stringify(ended.error)}`)
}

const targetOf = (ref: string): Invocation['target'] => {
  const [ns = '', name = ''] = ref.split('/')
  return { ns, var: name }
}

/** What a function learns of its run. */
export const runInfo = (): RunInfo => ({
  run_id: newId(),
  stream_id: newId(),
  run_type: 'call',
  attempt: 1,
  event_id: null,
  origin_run_id: null,
  project_id: newId(),
  project_name: 'test',
})

/** The states of the processes below this one: `T` is stopped. */
const statesBelow = (pid: number): string[] => {
  const stats = readdirSync('/proc').flatMap((name) => {
    try {
      return [readFileSync(`/proc/${name}/stat`, 'latin1')]
    } catch {
      return [] // it is no process, or has ended
    }
  })
  const processes = stats.map((stat) => /^(\d+) .*\) (\S) (\d+)/s.exec(stat) ?? [])
  const below = (parent: string): string[] =>
    processes.flatMap(([, id = '', state = '', of]) => (of === parent ? [state, ...below(id)] : []))
  return below(String(pid))
}

/** Whether a child of this process is frozen. */
export const hasFrozenChild = (): boolean => statesBelow(process.pid).includes('T')
