import { existsSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { allRoles } from '../../src/process/config.ts'
import { isAnyNamed, isNamed } from './engines.ts'
import { type FileResult, type Limits, runFile } from './runFile.ts'

/** One test file; `on` names its engines if they are not the embedded ones. */
export interface Job {
  readonly file: string
  readonly on?: string
  /** Whether the file has run on the embedded engines already: without enough time, it does not run again. */
  readonly again?: true
  run(limits: Limits): Promise<FileResult>
}

/** Files of which `atATime` may run at the same time. */
interface Pass {
  readonly jobs: readonly Job[]
  readonly atATime: number
}

/** One more than there are cores: many files wait for timeouts most of the time. */
const MANY = availableParallelism() + 1

/** Attacks load a service with all that they can, and their limits are seconds of processor time. */
const LOADS = availableParallelism()

/** More time for the engines that `SVC_TEST_*` name: they may be emulated and share this machine. */
const slower = ({ timeoutMs, lingerMs }: Limits): Limits => ({ timeoutMs: timeoutMs * 2, lingerMs })

/** The files that take longest, started first: at the end, a long file leaves the other cores idle. */
export const LONGEST: readonly string[] = [
  'test/adapters/eventStoreDurability.test.ts',
  'test/support/eventstoredb.test.ts',
  'test/api/crash.test.ts',
  'test/adapters/eventstoredb/appending.test.ts',
  'test/api/modules.test.ts',
  'test/builds/zip.test.ts',
  'test/api/fileUploads.test.ts',
  'test/adapters/s3Failures.test.ts',
  'test/openapi/fuzz.test.ts',
  'test/adapters/mongodbOpening.test.ts',
  'test/api/stop.test.ts',
  'test/builds/unloadable.test.ts',
  'test/api/readYourWrites.test.ts',
  'test/api/envStream.test.ts',
  'test/api/wrongCode.test.ts',
  'test/adapters/eventstoredb/following.test.ts',
  'test/support/uvu.test.ts',
  'test/api/fileCalls.test.ts',
  'test/api/eval.test.ts',
  'test/sandbox/wrong.test.ts',
  'test/process/engines.test.ts',
]

const longestFirst = (files: readonly string[]): string[] => [
  ...LONGEST.filter((file) => files.includes(file)),
  ...files.filter((file) => !LONGEST.includes(file)),
]

/** The passes of the files, one after the other. */
export async function* passes(files: readonly string[]): AsyncGenerator<Pass> {
  const plain = (file: string): Job => ({ file, run: (limits) => runFile(file, limits) })
  const clustered = isNamed('mongodb') && isNamed('s3') ? files.filter(isOfCluster) : []
  const single = files.filter((file) => isOfApi(file) && !clustered.includes(file)) // a cluster has the same engines
  const real = isAnyNamed() ? single.map(onEngines) : []
  const isolated = hasNamespaces ? files.filter(isOfSandbox).map(inNamespaces) : []
  const others = longestFirst(files.filter((file) => !isAttack(file) && !needsAll(file))).map(plain)
  yield { jobs: [...others, ...isolated], atATime: MANY }
  yield { jobs: files.filter(isAttack).map(patient), atATime: LOADS }
  yield { jobs: files.filter(needsAll).map(patient), atATime: 1 }
  yield { jobs: real, atATime: MANY }
  yield* onCluster(clustered)
}

const patient = (file: string): Job => ({ file, run: (limits) => runFile(file, slower(limits)) })

const isAttack = (file: string): boolean => file.startsWith('test/attacks/')

/** Whether the file kills nodes or loses engines: nothing else runs beside it. */
const needsAll = (file: string): boolean => file.startsWith('test/cluster/')

/** Tests of the API run on every engine. */
const isOfApi = (file: string): boolean => file.startsWith('test/api/')

/** Whether bubblewrap is here. `SVC_TEST_NAMESPACE=required`: these tests fail without it. */
const hasNamespaces = process.env['SVC_TEST_NAMESPACE'] === 'required' || existsSync('/usr/bin/bwrap')

/** Tests of the sandbox run in both of its tiers. */
const isOfSandbox = (file: string): boolean =>
  file.startsWith('test/sandbox/') && readFileSync(file, 'utf8').includes('openWorkbench')

const inNamespaces = (file: string): Job => ({
  file,
  on: 'the namespace tier',
  run: (limits) => runFile(file, limits, { SVC_TEST_SANDBOX: 'namespace', TMPDIR: '/var/tmp' }),
})

/** Runs the file on the named engines, with a stand-in if no variable names an event store. */
const onEngines = (file: string): Job => ({
  file,
  on: 'real engines',
  again: true,
  run: async (limits) => {
    const standIn = await standInIfNeeded()
    try {
      return await runFile(file, slower(limits), { SVC_TEST_ENGINES: 'real', ...standIn?.env })
    } finally {
      await standIn?.stop()
    }
  },
})

const standInIfNeeded = async () => {
  if (process.env['SVC_TEST_EVENT_STORE']) return null
  const { startStandIn } = await import('./eventstoredb/index.ts')
  const { url, stop } = await startStandIn()
  return { env: { SVC_TEST_STAND_IN: url }, stop }
}

/** Tests that need only the API of a service can share a cluster. */
const isOfCluster = (file: string): boolean => {
  const source = isOfApi(file) ? readFileSync(file, 'utf8') : ''
  return /start(Server|WithOther)\(\)/.test(source) && !/dataDir|spawnServer|\.output\b/.test(source)
}

/** Runs the files on one cluster of eight processes. After half of them, one node of each role is killed. */
async function* onCluster(files: readonly string[]): AsyncGenerator<Pass> {
  if (files.length === 0) return
  const standIn = await standInIfNeeded()
  Object.assign(process.env, standIn?.env)
  const { startCluster } = await import('./cluster.ts')
  const cluster = await startCluster()
  const jobOf = (file: string): Job => ({
    file,
    on: 'a cluster',
    again: true,
    run: (limits) =>
      runFile(file, slower(limits), {
        SVC_TEST_ENGINES: 'real',
        SVC_TEST_CLUSTER: [cluster.url, ...cluster.nodes('api').map(({ url }) => url)].join(' '),
        SVC_TEST_CLUSTER_ENV: JSON.stringify(cluster.env),
      }),
  })
  try {
    const half = Math.ceil(files.length / 2)
    yield { jobs: files.slice(0, half).map(jobOf), atATime: MANY }
    for (const role of allRoles) await cluster.kill(role)
    await cluster.add('api') // so that requests still alternate
    yield { jobs: files.slice(half).map(jobOf), atATime: MANY }
  } finally {
    await cluster.stop()
    await standIn?.stop()
  }
}
