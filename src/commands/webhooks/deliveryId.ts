import type { VerifyPreset } from '../../events/project.ts'
import type { Headers } from './signatures.ts'

/** Bytes at the begin of a large body in which an id is searched. */
export const HEAD_BYTES = 1024

const ID = /^[\x21-\x7e]{1,255}$/
/** Stripe writes the id of an event first. */
const FIRST_ID = /^\s*\{\s*"id"\s*:\s*"([\w.-]{1,255})"/

/** A body as a whole; null for an empty one, and for a large one, of which only the head is known. */
interface Body {
  readonly whole: Buffer | null
  readonly head: Buffer
}

const ids: Readonly<Record<VerifyPreset, (headers: Headers, body: Body) => unknown>> = {
  stripe: (_, { whole, head }) =>
    whole ? fieldIn(whole, 'id') : FIRST_ID.exec(head.toString('latin1'))?.[1],
  github: (headers) => headers['x-github-delivery'],
  slack: (_, { whole }) => whole && fieldIn(whole, 'event_id'),
  'standard-webhooks': (headers) => headers['webhook-id'] || headers['svix-id'], // the one that is signed
}

/** Returns the id that a provider gave to a delivery: the same one each time that it is sent. */
export const deliveryIdOf = (preset: VerifyPreset, headers: Headers, body: Body): string | undefined => {
  const id = ids[preset](headers, body)
  return typeof id === 'string' && ID.test(id) ? id : undefined
}

const fieldIn = (json: Buffer, name: string): unknown => {
  try {
    return (JSON.parse(json.toString()) as Readonly<Record<string, unknown>> | null)?.[name]
  } catch {
    return undefined // such as a form
  }
}
