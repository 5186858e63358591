import { setTimeout as delay } from 'node:timers/promises'
import { newId } from '../../src/ids.ts'
import { formOf, type Webhook } from '../support/build.ts'
import { randomOf } from '../support/randomOf.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { type Acting, actionAt, MIX } from './actions.ts'
import { isAccepted, REPEAT_MS, REPEATS, type SoakClient } from './client.ts'
import { codeOf, projects, type SoakProject, WITHOUT_TICKS } from './functions.ts'
import type { Recorder } from './recorder.ts'

const CLIENTS = 8
/** The time between two deployments. */
const DEPLOY_MS = 30_000

export interface Load {
  /** Resolves when all clients have finished what they began. */
  stop(): Promise<void>
}

interface LoadOptions {
  readonly client: SoakClient
  readonly recorder: Recorder
  readonly seed: number
  readonly ledger: string
  /** The longest pause of a client between two actions. */
  readonly pauseMs: number
}

/** Uploads a version of a project and deploys it, each until it is accepted. An outage may outlast the uploads. */
const deployVersion = async (
  { client, recorder, ledger }: Pick<LoadOptions, 'client' | 'recorder' | 'ledger'>,
  project: SoakProject,
  version: number,
  files = codeOf(project, { ledger, version }),
): Promise<void> => {
  const build_id = newId()
  const zip = await zipBuild(files)
  let isUploaded = false
  for (let n = 0; n < REPEATS && !isUploaded; n++) {
    if (n > 0) await delay(REPEAT_MS)
    const body = formOf(zip, { build_id })
    const answer = await client.attempt('POST', `/projects/${project}/builds`, { body })
    isUploaded = answer !== null && isAccepted(answer)
  }
  if (!isUploaded) return
  const answer = await client.keep('POST', `/projects/${project}/builds/${build_id}/deploy`)
  if (answer) recorder.deployed.push(build_id)
}

/** Creates the projects and deploys their first versions, before any fault. */
export const prepare = async (
  options: Pick<LoadOptions, 'client' | 'recorder' | 'ledger'>,
): Promise<void> => {
  for (const name of projects) {
    await options.client.keep('POST', '/projects', { body: { name } })
    await deployVersion(options, name, 0)
  }
}

/** Deploys a version without a schedule, so that no tick comes afterwards. */
export const endTicks = (options: Pick<LoadOptions, 'client' | 'recorder' | 'ledger'>): Promise<void> =>
  deployVersion(options, 'ticks', 0, WITHOUT_TICKS)

/** Clients that do everything a client can do, at random, until the load is stopped. */
export const openLoad = (options: LoadOptions): Load => {
  const { client, recorder, seed, pauseMs } = options
  const ending = new AbortController()
  const over = ending.signal
  let url: string | null = null
  const hook = async (): Promise<string | null> => {
    const listed = url === null ? await client.attempt('GET', '/projects/jobs/webhooks') : null
    if (listed?.status === 200) url = (listed.json as { data: Webhook[] }).data[0]?.url ?? null
    return url
  }
  const stream = { id: null }
  const act = async (number: number): Promise<void> => {
    const below = randomOf(seed * 1000 + number)
    const acting: Acting = { client, recorder, below, number, hook, stream }
    while (!over.aborted) {
      await actionAt(below(MIX))(acting)
      await delay(below(pauseMs))
    }
  }
  const redeploy = async (): Promise<void> => {
    const below = randomOf(seed * 1000 + CLIENTS)
    for (let version = 1; !over.aborted; version++) {
      await delay(DEPLOY_MS, undefined, { signal: over }).catch(() => {})
      if (!over.aborted) await deployVersion(options, below(2) === 0 ? 'jobs' : 'risky', version)
    }
  }
  const working = [redeploy(), ...Array.from({ length: CLIENTS }, (_, number) => act(number))]
  return {
    async stop() {
      ending.abort()
      await Promise.all(working)
    },
  }
}
