import { clock, isoOf } from '../../src/clock.ts'
import type { EventOf } from '../../src/events/index.ts'
import type { Plan } from '../../src/events/org.ts'
import type { FunctionSpec } from '../../src/events/project.ts'
import { newId } from '../../src/ids.ts'
import { silent } from '../../src/logger.ts'
import { Directory, type DirectorySeed } from '../../src/projections/directory.ts'
import { Alarms } from '../../src/sagas/alarms.ts'
import { fireSchedules } from '../../src/sagas/fireSchedules.ts'
import { runSaga } from '../../src/sagas/runSaga.ts'
import { nothingStored } from './mortalNodes.ts'
import type { Node } from '../support/openNode.ts'

export const MINUTE = 60_000
export const HOUR = 60 * MINUTE
export const everyMinute: FunctionSpec = {
  ns: 'jobs',
  var: 'sweep',
  schedule: { cron: '* * * * *', timezone: 'UTC' },
  retry: { attempts: 2, delay: 10 },
}

/** A directory in which a build with these functions was deployed `ago` milliseconds ago. */
export const deployed = async (
  functions: readonly FunctionSpec[],
  ago: number,
  project_id = newId(),
  envs: DirectorySeed['envs'] = [{ env_id: 'env', org_id: 'org', name: 'dev' }],
  plan: Plan = 'self_host',
) => {
  const directory = new Directory(() => Promise.reject(new Error('the blobs are empty')))
  const build = { build_id: newId(), project_id, hash: 'h', deployed: true, build_type: 'release' as const }
  await directory.seed({
    orgs: [{ org_id: 'org', slug: 'local', plan }],
    envs,
    projects: [{ project_id, env_id: 'env', name: 'shop', network: null }],
    builds: [{ ...build, functions, updated_at: isoOf(clock.now() - ago) }],
    domains: [],
    cursor: '',
  })
  return { directory, project_id }
}

export const requestedIn = async ({ store }: Node): Promise<EventOf<'RunRequested'>[]> => {
  const found: EventOf<'RunRequested'>[] = []
  for await (const { events, caughtUp } of store.subscribe({
    types: ['RunRequested'],
    signal: new AbortController().signal,
  })) {
    for (const { event } of events) if (event.type === 'RunRequested') found.push(event)
    if (caughtUp) break
  }
  return found
}

export const tickOf = ({ input }: EventOf<'RunRequested'>) =>
  input?.value as { cron: string; scheduled_time: string }

/** A clock that is in the middle of a minute now: the last tick is due, and the next one is not while a test runs. */
export const clockInMinute = () => {
  const ahead = MINUTE + 20_000 - (clock.now() % MINUTE)
  return { now: () => clock.now() + ahead, monotonic: clock.monotonic }
}

type Deps = Parameters<typeof fireSchedules>[0]

/** Runs the saga and returns its alarms. */
export const saga = ({
  aggregates,
  quotas,
  signal,
  directory,
  logger = silent,
  store = nothingStored,
  turns,
  functionRates,
  shown = clock,
}: Pick<Deps, 'aggregates' | 'quotas' | 'directory' | 'turns' | 'functionRates' | 'signal'> & {
  readonly store?: Deps['store']
  readonly logger?: Deps['logger']
  readonly shown?: ReturnType<typeof clockInMinute>
}): Alarms => {
  const alarms = new Alarms({ clock: shown })
  const { now } = shown
  const deps = { aggregates, quotas, directory, logger, store, turns, functionRates, signal, now }
  void runSaga(fireSchedules(deps), { logger, clock: shown, alarms }, signal)
  return alarms
}
