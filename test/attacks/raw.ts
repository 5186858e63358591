import { connect } from 'node:net'
import type { Permissions } from '../../src/events/org.ts'
import type { Api } from '../support/http.ts'
import { as, newSession } from '../api/issuing.ts'
import { deploy, type Webhook } from '../support/build.ts'
import { SLACK } from '../support/patience.ts'
import { newId } from '../../src/ids.ts'
import type { Tenant } from './target.ts'

export interface RawReply {
  /** 0 if the connection ended without a reply. */
  readonly status: number
  readonly text: string
}

const ENDS_AFTER_MS = 20_000 * SLACK

/** Sends text over a connection of its own. Resolves with everything that came back until it ended. */
export const raw = (url: string, text: string): Promise<RawReply> =>
  new Promise((resolve) => {
    const { hostname, port } = new URL(url)
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    let got = ''
    const done = () => {
      clearTimeout(timer)
      socket.destroy()
      resolve({ status: Number(/^HTTP\/1\.1 (\d{3})/.exec(got)?.[1] ?? 0), text: got })
    }
    const timer = setTimeout(done, ENDS_AFTER_MS)
    socket.on('data', (chunk) => (got += String(chunk)))
    socket.on('end', done).on('error', done).on('close', done)
    socket.write(text)
  })

/** A request whose connection ends with its reply. */
export const head = (line: string, ...headers: readonly string[]): string =>
  [`${line} HTTP/1.1`, ...headers, 'Connection: close', '', ''].join('\r\n')

export const bearer = ({ api }: Tenant): string => `Authorization: Bearer ${api.key}`

/** Throws with every try that went through; resolves with how the others ended. */
export const allRefused = (
  tries: Readonly<Record<string, number | string>>,
  allowed: readonly (number | string)[],
): string => {
  const entries = Object.entries(tries)
  const through = entries.filter(([, outcome]) => !allowed.includes(outcome))
  if (through.length > 0)
    throw new Error(`went through: ${through.map(([name, outcome]) => `${name}: ${outcome}`).join(', ')}`)
  const counts = Map.groupBy(entries, ([, outcome]) => outcome)
  return [...counts].map(([outcome, found]) => `${found.length} tries: ${outcome}`).join(', ')
}

export const expected = (holds: boolean, otherwise: string): void => {
  if (!holds) throw new Error(otherwise)
}

/** Deploys webhook functions, and returns their URLs by path. */
export const hooksOf = async (
  { api }: Tenant,
  functions: Readonly<Record<string, { readonly code: string; readonly more?: string }>>,
): Promise<Map<string, string>> => {
  const project = `p-${newId()}`
  const code = Object.entries(functions).map(
    ([name, { code: body, more = '' }]) =>
      `export const ${name} = fn({ webhook: { service: '${project.slice(0, 20)}', path: '/${name}'${more} } }, ${body})`,
  )
  await deploy(api, project, { 'main.js': `import { fn } from 'svc'\n${code.join('\n')}` })
  const { data } = await api.page<Webhook>(`/projects/${project}/webhooks?limit=100`)
  return new Map(data.map(({ path, url }) => [path.slice(1), url]))
}

/** The API with a new session of the tenant that has these permissions only. */
export const limited = async ({ api }: Tenant, permissions: Permissions): Promise<Api> =>
  as(api, await newSession(api, permissions))
