import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { createClient } from 'svc/client'
import { operator } from './operator.ts'
import { forgetCustomer, keyOf, storeCustomer } from './store.ts'

/** The organization of this product in the service. */
const ORG = 'notes'
const { SVC_URL = 'http://127.0.0.1:8080' } = process.env

/** The API of a customer's environment, which contains no data of another customer. */
const clientOf = (customer: string) => createClient({ url: SVC_URL, token: keyOf(customer).key })

/** Creates an environment for a customer, and deploys the functions of `src` in it. */
export const addCustomer = async (customer: string) => {
  await operator('POST', '/orgs', { slug: ORG, name: 'Notes', plan: 'pro' }, { exists: true })
  const { env_id } = await operator<{ env_id: string }>('POST', `/orgs/${ORG}/envs`, { name: customer })
  const { token } = await operator<{ token: string }>('POST', `/envs/${env_id}/api-keys`, { name: 'backend' })
  storeCustomer(customer, { env_id, key: token })
  await deploy(token)
  return { customer, env_id }
}

/** Deploys in the environment of a key. A build that is deployed already is neither uploaded nor deployed again. */
const deploy = async (key: string): Promise<void> => {
  const env = { ...process.env, SVC_URL, SVC_KEY: key }
  await promisify(execFile)('npx', ['svc', 'deploy'], { cwd: import.meta.dirname, env })
}

/** A session for a page: it adds notes of the customer and follows what happens, for ten minutes. */
export const grantUser = async (customer: string) => {
  const permissions = { 'event:note:added': ['create'], 'stream:*': ['read'] } as const
  const { token } = await clientOf(customer).request('POST /v1/sessions', {
    body: { permissions, expires_in: 600 },
  })
  return { url: SVC_URL, token }
}

/** A key for a device. The webhook receives the name of the device with each request. */
export const grantDevice = async (customer: string, device: string) => {
  const client = clientOf(customer)
  const { token } = await client.request('POST /v1/service-keys', {
    body: { name: device, permissions: { 'webhook:devices': ['execute'] }, metadata: { device } },
  })
  const { data } = await client.request('GET /v1/projects/{project}/webhooks', { path: { project: 'notes' } })
  return { url: data[0]?.url, token }
}

export const listNotes = (customer: string) => clientOf(customer).call('notes/list').result()

/** Deletes the environment of a customer with all of its data. Its credentials end at once. */
export const removeCustomer = async (customer: string) => {
  const { env_id } = keyOf(customer)
  await operator('DELETE', `/envs/${env_id}`)
  forgetCustomer(customer)
  return { removed: customer }
}
