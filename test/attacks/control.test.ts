import { publish, runsOf } from '../support/build.ts'
import { until } from '../support/until.ts'
import { attackSuite } from './attack.ts'
import { deployed, shown } from './calls.ts'

const CONTROLS = `import { send } from 'svc'
  export const attack = async (ids: any) => {
    const outcomes = []
    for (const type of ['svc:cancel', 'svc:replay'])
      for (const data of [{ run_id: ids.run_id }, { event_id: ids.event_id }, ids])
        outcomes.push(await send(type, data).then(() => 'sent', (error: any) => error.code))
    return outcomes.join()
  }`

attackSuite('control events', [
  {
    id: 'A/06-forged-requests/control',
    attempt: 'cancel and replay a run of another environment by events from a function',
    severity: 'critical',
    run: async (target) => {
      const { api, env_id } = target.victim
      const project = await deployed(api, {
        'main.js': `let finish
          const finished = new Promise((resolve) => (finish = resolve))
          export const waits = () => finished
          export const ends = () => finish('its own')`,
      })
      const { event_id } = await publish(api, 'svc:call', { fn: 'main/waits', project, args: [] })
      const { run_id } = await until(async () => (await runsOf(api, event_id))[0])
      const { status, result, error } = await target.run(CONTROLS, { run_id, event_id, env_id })
      if (status !== 'succeeded') throw new Error(JSON.stringify(error))
      await publish(api, 'svc:call', { fn: 'main/ends', project, args: [] })
      const run = await until(async () =>
        (await runsOf(api, event_id)).find((each) => each.status !== 'running'),
      )
      const runs = await runsOf(api, event_id)
      if (run.status !== 'succeeded' || runs.length !== 1)
        throw new Error(`the victim's run ended ${shown(run)}, its event has ${runs.length} runs`)
      return `events of the attacker: ${String(result)}; the victim's run succeeded and was not repeated`
    },
  },
])
