import { AppError } from '../errors.ts'
import type { EventOf } from '../events/index.ts'
import type { FunctionSpec } from '../events/project.ts'
import { type Decider, type Folded, foreign } from './decider.ts'

/** The fields that identify a webhook within its environment. */
export type WebhookAddress = Pick<EventOf<'WebhookReserved'>, 'method' | 'service' | 'path'>

/** The addresses of the webhooks among the functions of a build. */
export const webhooksIn = (functions: readonly FunctionSpec[]): WebhookAddress[] =>
  functions.flatMap(({ webhook }) => {
    if (!webhook) return []
    const { method, service, path } = webhook
    return [{ method, service, path }]
  })

/** Returns a webhook address as text, for messages and comparisons. */
export const textOfWebhook = ({ method, service, path }: WebhookAddress): string =>
  `${method} ${service}${path}`

/** A project that reserved a webhook address, with the fence of the deployment. */
export type WebhookHolder = Pick<EventOf<'WebhookReserved'>, 'project_id' | 'fence' | 'reserved_at'>

interface Reservation {
  readonly holder: WebhookHolder | null
}

export interface WebhookCommand {
  readonly type: 'ReserveWebhook'
  readonly webhook: WebhookAddress
  readonly by: WebhookHolder
  /** The holder whose reservation is known to be void: it is replaced. */
  readonly instead?: WebhookHolder | undefined
}

type WebhookEvent = EventOf<'WebhookReserved'>

/**
 * The webhook addresses of an environment are unique: each is a stream, and the append is the check. A reservation is
 * never released. It is void as soon as its project has a later fence and does not serve the address (decision 0019).
 */
export const webhook: Decider<Reservation, WebhookCommand, WebhookEvent> = {
  initial: () => ({ holder: null }),

  decide({ webhook, by, instead }, { holder }) {
    const isOwn = holder?.project_id === by.project_id
    if (isOwn && holder.fence >= by.fence) return []
    const isVoid = holder?.project_id === instead?.project_id && holder?.fence === instead?.fence
    if (holder && !isOwn && !isVoid)
      throw new AppError('conflict', 'webhook: another project reserved it', { data: { holder } })
    return [{ type: 'WebhookReserved', ...webhook, ...by }]
  },

  evolve(_, { event }: Folded<WebhookEvent>) {
    if (event.type !== 'WebhookReserved') return foreign(event.type)
    const { project_id, fence, reserved_at } = event
    return { holder: { project_id, fence, reserved_at } }
  },
}
