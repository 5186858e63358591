import { readdirSync } from 'node:fs'
import { newId } from '../../src/ids.ts'
import { deploy, type Files, publish, type Run, runsOf } from '../support/build.ts'
import type { Api } from '../support/http.ts'
import { until } from '../support/until.ts'
import type { Target } from './target.ts'

/** Longer than the time limits of runs in these attacks, and shorter than that of an attack. */
const PATIENT_MS = 80_000

/** Deploys the files to a new project. Resolves with its name. */
export const deployed = async (api: Api, files: Files): Promise<string> => {
  const project = `p-${newId()}`
  await deploy(api, project, files)
  return project
}

/** Calls `main/<name>` of a project and waits for the end of its run, also on a machine that an attack keeps busy. */
export const endOf = async (api: Api, project: string, name: string, ...args: unknown[]): Promise<Run> => {
  const { event_id } = await publish(api, 'svc:call', { fn: `main/${name}`, project, args })
  return until(async () => (await runsOf(api, event_id)).find(({ status }) => status !== 'running'), {
    timeoutMs: PATIENT_MS,
  })
}

/** The status of a run, and the code of its error. */
export const shown = ({ status, error }: Run): string => (error ? `${status} ${error.code}` : status)

/** The rest of a body that does not return. */
export const FOREVER = `await new Promise(() => {})`

/** A module whose functions run one of the bodies: `attack` has a second for it, `patient` has no limit of its own. */
export const moduleOf = (bodies: Readonly<Record<string, string>>): string =>
  `import { fn } from 'svc'
  const bodies: any = { ${Object.entries(bodies)
    .map(([name, body]) => `${JSON.stringify(name)}: async () => { ${body} }`)
    .join(',\n')} }
  export const attack = fn({ timeout: 1000 }, (name: string) => bodies[name]())
  export const patient = (name: string) => bodies[name]()
  export const alive = () => 'alive'`

/** Fails unless functions of another tenant work and the service has no core file. */
export const unharmed = async ({ victim, server }: Target): Promise<string> => {
  const own = await deployed(victim.api, { 'main.ts': moduleOf({}) })
  const { status } = await endOf(victim.api, own, 'alive')
  if (status !== 'succeeded') throw new Error(`the run of another tenant ended ${status}`)
  const cores = readdirSync(server.dataDir, { recursive: true }).filter((name) =>
    /(^|\/)core(\.\d+)?$/.test(String(name)),
  )
  if (cores.length > 0) throw new Error(`core files: ${cores.join()}`)
  return 'another tenant is served, there is no core file'
}
