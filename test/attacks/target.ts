import { readConfig } from '../../src/process/config.ts'
import { openSecrets } from '../../src/process/secretsFile.ts'
import { messageOf } from '../../src/errors.ts'
import { newId } from '../../src/ids.ts'
import { deploy, handle, type Files, type Run } from '../support/build.ts'
import { type Api, openApi } from '../support/http.ts'
import { installation } from '../support/installation.ts'
import { type ServerProcess, spawnServer } from '../support/server.ts'

/** The tiers of the sandbox, weakest first. */
export const tiers = ['process', 'namespace'] as const
export type Tier = (typeof tiers)[number]

type Plan = 'free' | 'starter' | 'pro' | 'scale' | 'self_host'

/** An organization with one environment and a full API key. */
export interface Tenant {
  readonly api: Api
  readonly org: string
  readonly env_id: string
}

/** A service of its own process, with two organizations that know nothing of each other. */
export interface Target {
  readonly tier: Tier
  readonly server: ServerProcess
  /** The API with the operator token. */
  readonly operator: Api
  readonly attacker: Tenant
  readonly victim: Tenant
  /** Adds an organization. */
  tenant(plan: Plan): Promise<Tenant>
  /** Runs `main/attack` of a new project of the attacker with the arguments; `code` is the module `main.ts`. */
  run(code: string, ...args: readonly unknown[]): Promise<Run>
  /** Starts another service in the same tier, for attacks that could end this one. */
  fresh(env?: Readonly<Record<string, string>>, dataDir?: string): Promise<Target>
  close(): Promise<void>
}

/** Opens a target. Resolves with the reason if this machine lacks the tier. */
export const openTarget = async (
  tier: Tier,
  env: Readonly<Record<string, string>> = {},
  givenDir?: string,
): Promise<Target | string> => {
  let server: ServerProcess
  try {
    server = await spawnServer({
      env: { SVC_SANDBOX: tier, ...env },
      ...(givenDir !== undefined && { dataDir: givenDir }),
    })
  } catch (error) {
    if (tier === 'process') throw error
    return messageOf(error)
  }
  const { url, dataDir } = server
  const ready = await (await fetch(`${url}/readyz`)).text()
  if (tier === 'namespace' && !ready.includes('"tier":"namespace"')) {
    await server.end('SIGKILL')
    return 'The service does not report the namespace tier in /readyz'
  }
  const operator = openApi(url, openSecrets(readConfig(installation(dataDir))).operatorToken)
  const opened: Target[] = []

  const tenant = async (plan: Plan): Promise<Tenant> => {
    const org = `org-${newId()}`.slice(0, 30)
    await operator.post(`${url}/operator/orgs`, { slug: org, name: org, plan })
    const { env_id } = await operator.post<{ env_id: string }>(`${url}/operator/orgs/${org}/envs`, {
      name: 'prod',
    })
    const { token } = await operator.post<{ token: string }>(`${url}/operator/envs/${env_id}/api-keys`, {
      name: 'full',
    })
    return { api: openApi(url, token), org, env_id }
  }

  const attacker = await tenant('self_host')
  return {
    tier,
    server,
    operator,
    attacker,
    victim: await tenant('self_host'),
    tenant,
    run: (code, ...args) => runIn(attacker.api, { 'main.ts': code }, ...args),
    fresh: async (more = {}, own) => {
      const target = await openTarget(tier, { ...env, ...more }, own)
      if (typeof target === 'string') throw new Error(target)
      opened.push(target)
      return target
    },
    close: async () => {
      for (const target of opened) await target.close()
      await server.end('SIGKILL')
    },
  }
}

/** The port of the service. */
export const portOf = ({ server }: Target): number => Number(new URL(server.url).port)

/** Deploys the files to a new project and calls `main/attack`. A failed run is returned, not thrown. */
export const runIn = async (api: Api, files: Files, ...args: readonly unknown[]): Promise<Run> => {
  const project = `p-${newId()}`
  await deploy(api, project, files)
  return handle(api, 'svc:call', { fn: 'main/attack', project, args })
}
