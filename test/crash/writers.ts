import { createHash } from 'node:crypto'
import {
  type Build,
  type BuildUpload,
  type Event,
  formOf,
  type Project,
  type Webhook,
} from '../support/build.ts'
import { until } from '../support/until.ts'
import { zipBuild } from '../support/zipBuild.ts'
import { accepted, acknowledge, asOperator, dataOf, type Target, type Writer } from './client.ts'
import { EVENT_TYPE, functionsOf, PROJECT } from './functions.ts'
import type { Ledger, Write } from './ledger.ts'

/** The longest time until the functions are deployed. */
const PREPARES_MS = 120_000

type Random = (below: number) => number

/** Creates the project and deploys the first version of its functions. */
export const prepare = async (target: Target, ledger: Ledger): Promise<void> => {
  if ((await target.api.send('GET', `/projects/${PROJECT}`)).status === 404)
    await accepted(target, 'POST', '/projects', { body: { name: PROJECT } })
  const deployed = () =>
    deployments(ledger)
      .write(target)
      .then(() => true)
  await until(deployed, { timeoutMs: PREPARES_MS, everyMs: 500 }) // the first process of a busy machine may take long
}

/** Publishes events with an `Idempotency-Key`. One that was not acknowledged is sent again with its key. */
export const events = (ledger: Ledger, random: Random, name: string): Writer => {
  let open: Write | null = null
  let count = 0
  return {
    async write(target) {
      open ??= ledger.begin('event', `${name}-${++count}`, `${name}-${count}`)
      const size = random(20) === 0 ? 80_000 : random(300) // a large one becomes a blob
      const answer = await accepted(target, 'POST', '/events', {
        body: {
          event_type: EVENT_TYPE,
          event_data: { n: open.value, ms: count % 60, fill: 'x'.repeat(sizeOf(open, size)) },
        },
        headers: { 'Idempotency-Key': open.register },
      })
      acknowledge(open, answer, dataOf<Event>(answer).event_id)
      open = null
    },
  }
}

/** The same size for every attempt, because a key belongs to one body. */
const sizes = new WeakMap<Write, number>()
const sizeOf = (write: Write, proposed: number): number => {
  const size = sizes.get(write) ?? proposed
  sizes.set(write, size)
  return size
}

/** Calls a webhook and waits for the result of its run. */
export const webhooks = (ledger: Ledger, name: string): Writer => {
  let count = 0
  return {
    async write(target) {
      const write = ledger.begin('webhook', `${name}-${++count}`, `${name}-${count}`)
      const answer = await callHook(target, '/echo', { n: write.value })
      acknowledge(write, answer, (answer.json as { run_id: string }).run_id)
    },
  }
}

/** Calls a webhook of the functions by its path. */
export const callHook = async (target: Target, path: string, body: unknown) =>
  accepted(target, 'POST', `${target.api.url}${await hookPath(target, path)}`, { body })

/** Tokens are derived, so a path remains valid for the life of a project. A power cut may have undone its creation. */
const hookPaths = new Map<string, string>()
const hookPath = async (target: Target, path: string): Promise<string> => {
  const key = `${await projectIdOf(target)} ${path}`
  const known = hookPaths.get(key)
  if (known !== undefined) return known
  const { data } = await target.api.page<Webhook>(`/projects/${PROJECT}/webhooks?limit=100`)
  const found = data.find((webhook) => webhook.path === path)
  if (!found) throw new Error(`Expected the webhook ${path}`)
  const { pathname } = new URL(found.url)
  hookPaths.set(key, pathname)
  return pathname
}

const projectIds = new WeakMap<Target, string>()
const projectIdOf = async (target: Target): Promise<string> => {
  const known = projectIds.get(target)
  if (known !== undefined) return known
  const { project_id } = dataOf<Project>(await accepted(target, 'GET', `/projects/${PROJECT}`))
  projectIds.set(target, project_id)
  return project_id
}

export const sha256 = (content: string | Uint8Array): string =>
  createHash('sha256').update(content).digest('hex')

const contentOf = (random: Random): Uint8Array<ArrayBuffer> =>
  new Uint8Array(1 + random(random(5) === 0 ? 300_000 : 9000)).map(() => random(256))

/** Replaces the content of a few files. */
export const files = (ledger: Ledger, random: Random, name: string): Writer => ({
  async write(target) {
    const content = contentOf(random)
    const path = `${name}/${random(4)}.bin`
    const write = ledger.begin('file', path, sha256(content))
    const answer = await accepted(target, 'PUT', `/files/upload/${path}`, { body: content })
    acknowledge(write, answer, dataOf<{ file_id: string }>(answer).file_id)
  },
})

/** Uploads a file in parts. */
export const uploads = (ledger: Ledger, random: Random, name: string): Writer => ({
  async write(target) {
    const content = contentOf(random)
    const path = `${name}/parts.bin`
    const begun = await accepted(target, 'POST', '/files/uploads', { body: { path } })
    const { upload_id } = dataOf<{ upload_id: string }>(begun)
    await accepted(target, 'PUT', `/files/uploads/${upload_id}/1`, { body: contentOf(random) }) // is replaced
    await accepted(target, 'PUT', `/files/uploads/${upload_id}/1`, { body: content })
    const write = ledger.begin('upload', path, sha256(content))
    const answer = await accepted(target, 'POST', `/files/uploads/${upload_id}/complete`)
    acknowledge(write, answer, dataOf<{ file_id: string }>(answer).file_id)
  },
})

/** Changes a context variable of the project. */
export const variables = (ledger: Ledger, name: string): Writer => {
  let count = 0
  return {
    async write(target) {
      const value = `${name}-${++count}-${'v'.repeat(50)}`
      const base = `/projects/${PROJECT}/context`
      const write = ledger.begin('variable', name, value)
      const changed = await target.api.send('PUT', `${base}/${name}`, { body: { value } })
      const answer =
        changed.status === 404
          ? await accepted(target, 'POST', base, { body: { key: name, value } })
          : changed
      if (answer.status > 299)
        throw new Error(`Expected a changed variable, got ${answer.status} ${answer.text}`)
      acknowledge(write, answer, name)
    },
  }
}

/** Uploads and deploys one version after another. */
export const deployments = (ledger: Ledger): Writer => ({
  async write(target) {
    const version = String(ledger.writes.filter(({ kind }) => kind === 'deployment').length + 1)
    const base = `/projects/${PROJECT}/builds`
    const form = formOf(await zipBuild(functionsOf(version)))
    const { build_id } = dataOf<BuildUpload>(await accepted(target, 'POST', base, { body: form }))
    const write = ledger.begin('deployment', PROJECT, version)
    const answer = await accepted(target, 'POST', `${base}/${build_id}/deploy`)
    acknowledge(write, answer, dataOf<Build>(answer).build_id)
  },
})

/** An environment of its own whose secrets are erased, again and again. */
export const erasures = (ledger: Ledger, name: string): Writer => {
  let environment: { readonly env_id: string; readonly key: string } | null = null
  let count = 0
  const open = async (target: Target) => {
    const post = async <T>(path: string, body: unknown): Promise<T> => {
      const [url, sent] = asOperator(target, path)
      return dataOf<T>(await accepted(target, 'POST', url, { ...sent, body }))
    }
    const slug = `${name}-${count}`
    await post('/orgs', { slug, name: slug, plan: 'self_host' })
    const { env_id } = await post<{ env_id: string }>(`/orgs/${slug}/envs`, { name: 'prod' })
    const { token } = await post<{ token: string }>(`/envs/${env_id}/api-keys`, { name: 'erasures' })
    await asTenant(target, token, '/projects', { name: slug })
    return { env_id, key: token }
  }
  const asTenant = (target: Target, key: string, path: string, body: unknown) =>
    accepted(target, 'POST', path, { body, headers: { Authorization: `Bearer ${key}` } })
  return {
    async write(target) {
      count++
      environment ??= await open(target)
      const { data } = (
        await target.api.send('GET', '/projects', {
          headers: { Authorization: `Bearer ${environment.key}` },
        })
      ).json as { data: { name: string }[] }
      await asTenant(target, environment.key, `/projects/${data[0]?.name}/context`, {
        key: `k${count}`,
        value: 'secret',
      })
      const write = ledger.begin('erasure', environment.env_id, String(count))
      const [url, sent] = asOperator(target, `/envs/${environment.env_id}/data-keys`)
      acknowledge(write, await accepted(target, 'DELETE', url, sent), environment.env_id)
    },
  }
}

/** Replaces the master key. */
export const rotations = (ledger: Ledger): Writer => ({
  async write(target) {
    const write = ledger.begin('rotation', 'master', String(ledger.writes.length))
    const [url, sent] = asOperator(target, '/secrets/rotate-master')
    acknowledge(write, await accepted(target, 'POST', url, { ...sent, body: {} }), 'master')
  },
})

/** All kinds of writes that a user makes. */
export const allWriters = (ledger: Ledger, random: Random, name: string): Writer[] => [
  events(ledger, random, `${name}-e1`),
  events(ledger, random, `${name}-e2`),
  events(ledger, random, `${name}-e3`),
  webhooks(ledger, `${name}-w1`),
  webhooks(ledger, `${name}-w2`),
  files(ledger, random, `${name}-f`),
  uploads(ledger, random, `${name}-u`),
  variables(ledger, `${name}-v`),
  deployments(ledger),
]
