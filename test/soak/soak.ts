import { setTimeout as delay } from 'node:timers/promises'
import { clock } from '../../src/clock.ts'
import { messageOf } from '../../src/errors.ts'
import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { openApi } from '../support/http.ts'
import { randomOf } from '../support/randomOf.ts'
import { check } from './check/index.ts'
import type { Finding } from './check/finding.ts'
import { openSoakClient } from './client.ts'
import { openFleet, type Fleet } from './fleet.ts'
import { followEnvironment } from './followers.ts'
import { expectedEnds } from './functions.ts'
import { openLedger } from './ledger.ts'
import { endTicks, openLoad, prepare } from './load.ts'
import { describeFault, planOf } from './plan.ts'
import { readLists, readStored } from './readState.ts'
import { Recorder } from './recorder.ts'
import type { Records } from './records.ts'
import { settle } from './settle.ts'
import { strike } from './strike.ts'

const PROGRESS_MS = 5000
/** The longest pause of a client: longer on engines, because read models that scan must keep up. */
const PAUSE_MS = { embedded: 300, engines: 1500 } as const

export interface Soak {
  readonly minutes: number
  readonly seed: number
  /** The longest pause of a client. */
  readonly pauseMs?: number | undefined
  readonly report: (line: string) => void
}

export interface SoakResult {
  readonly faults: number
  readonly findings: readonly Finding[]
  readonly records: Records
  /** The output of each node. */
  readonly outputs: ReadonlyMap<string, string>
}

/** Loads a service while its parts fail, then compares all records. */
export const soak = async ({ minutes, seed, pauseMs: pause, report }: Soak): Promise<SoakResult> => {
  const recorder = new Recorder()
  const ledger = await openLedger()
  const onIncident = (what: string) => {
    recorder.incidents.push(what)
    report(`incident: ${what}`)
  }
  const fleet = await openFleet({ variables: { SVC_EGRESS_ALLOW: ledger.allow }, onIncident })
  report(`${fleet.nodes.length} nodes; engines: ${fleet.targets.engines.join(', ') || 'embedded'}`)
  try {
    await fleet.recover()
    const api = openApi(fleet.url, openSecrets(readConfig(fleet.env)).apiKey)
    const client = openSoakClient(api, recorder)
    const loaded = { client, recorder, ledger: ledger.url }
    await prepare(loaded)
    const followers = followEnvironment(api, recorder, randomOf(seed))
    const pauseMs = pause ?? (fleet.targets.engines.length > 0 ? PAUSE_MS.engines : PAUSE_MS.embedded)
    const load = openLoad({ ...loaded, seed, pauseMs })

    let faults = 0
    const began = clock.monotonic()
    const progress = () => {
      const minute = ((clock.monotonic() - began) / 60_000).toFixed(1)
      const events = recorder.publications.reduce((sum, { event_ids }) => sum + event_ids.length, 0)
      report(
        `minute ${minute}  faults ${faults}  events ${events}  runs ${ledger.effects.length}  ` +
          `findings ${recorder.findings}`,
      )
    }
    const ticking = setInterval(progress, PROGRESS_MS)
    const durationMs = minutes * 60_000
    try {
      await strikeAll(fleet, planOf(seed, durationMs, fleet.targets), {
        began,
        onFault: (what) => {
          faults++
          report(`fault ${faults}: ${what}`)
        },
        onIncident,
      })
      await delay(Math.max(0, began + durationMs - clock.monotonic()))
      report('the faults have ended; waiting for the work to end')
      await fleet.recover()
      await load.stop()
      await endTicks(loaded)
      const markId = await settle(client, followers, report)
      const { env_id } = await api.get<{ env_id: string }>('/env')
      report('reading the lists')
      const lists = await readLists(api).catch((error: unknown) => {
        onIncident(`the lists cannot be read: ${messageOf(error)}`)
        return null // everything else is compared
      })
      await followers.stop()
      await fleet.stop()
      report('comparing the records')
      const records: Records = {
        ...recorder.records(),
        env_id,
        lists,
        expected: expectedEnds,
        effects: ledger.effects,
        calls: ledger.calls,
        ...(await readStored(fleet.env, markId)),
      }
      return { faults, findings: check(records), records, outputs: outputsOf(fleet) }
    } finally {
      clearInterval(ticking)
    }
  } finally {
    await Promise.all(fleet.nodes.map((node) => node.end('SIGKILL')))
    await fleet.close()
    await ledger.close()
  }
}

const outputsOf = ({ nodes }: Fleet): ReadonlyMap<string, string> =>
  new Map(nodes.map(({ name, output }) => [name, output()]))

/** Lets all faults happen at their times. Resolves when the last one has ended. */
const strikeAll = async (
  fleet: Fleet,
  plan: ReturnType<typeof planOf>,
  {
    began,
    onFault,
    onIncident,
  }: { began: number; onFault: (what: string) => void; onIncident: (what: string) => void },
): Promise<void> => {
  const striking = plan.map(async (fault) => {
    await delay(Math.max(0, began + fault.atMs - clock.monotonic()))
    try {
      const heal = await strike(fault, fleet)
      if (!heal) return
      onFault(describeFault(fault))
      await delay(fault.forMs)
      await heal()
    } catch (error) {
      onIncident(`${describeFault(fault)}: ${messageOf(error)}`)
    }
  })
  await Promise.all(striking)
}
