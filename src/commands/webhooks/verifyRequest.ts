import { clock } from '../../clock.ts'
import { AppError, isAppError } from '../../errors.ts'
import { VERIFY_PRESETS } from '../../events/project.ts'
import type { WebhookRequest } from '../../ports/runtime.ts'
import { readVariable } from '../context/readVariable.ts'
import type { CommandDeps } from '../deps.ts'
import { deliveryIdOf, HEAD_BYTES } from './deliveryId.ts'
import type { WebhookEndpoint } from './findWebhook.ts'
import { type Headers, keyOf, openSignature } from './signatures.ts'

/** The check of a request while its body arrives. */
export interface Verification {
  /** Passes on the chunks of a body of which it is not known whether it becomes part of the request. */
  through(content: AsyncIterable<Buffer>): AsyncIterable<Buffer>
  /**
   * Returns the id that the provider gave to the delivery, if it did. Throws `unauthorized` if the signature is not valid.
   * `body`: the fields of a body that is part of the request, also if it arrived in chunks.
   */
  finish(body: Pick<WebhookRequest, 'body-raw' | 'body-bytes'>): string | undefined
}

type Endpoint = Pick<WebhookEndpoint, 'env' | 'deployed'>
type Verify = NonNullable<WebhookEndpoint['webhook']['verify']>

/**
 * Begins to check the signature of a request with the secret in a context variable of the project. Rejects with
 * `unauthorized`, or with `internal_server_error` if there is no such secret: without it, every sender could call the function.
 */
export const verifyRequest = async (
  deps: Pick<CommandDeps, 'store' | 'aggregates' | 'keyring'>,
  { env, deployed }: Endpoint,
  verify: Verify,
  headers: Headers,
): Promise<Verification> => {
  const preset = VERIFY_PRESETS.find((known) => known === verify.preset)
  if (!preset) throw notPossible(`this version of the service has no preset ${verify.preset}`)
  const variable = { env_id: env.env_id, project_id: deployed.project.project_id, key: verify.context }
  const key = keyOf(preset, (await secretOf(deps, variable)).trim())
  if (key.length === 0) throw notPossible('the context variable that `verify` names contains no secret')
  const signature = openSignature(preset, headers, key, clock.now())
  let head = Buffer.alloc(0)
  return {
    async *through(content) {
      for await (const chunk of content) {
        if (head.length < HEAD_BYTES)
          head = Buffer.concat([head, chunk.subarray(0, HEAD_BYTES - head.length)])
        signature.update(chunk)
        yield chunk
      }
    },
    finish: (body) => {
      const small = bytesOf(body)
      if (head.length === 0) signature.update(small) // otherwise, it was part of the chunks
      signature.finish()
      return deliveryIdOf(preset, headers, { whole: small.length > 0 ? small : null, head })
    },
  }
}

const secretOf = async (...input: Parameters<typeof readVariable>): Promise<string> => {
  try {
    return await readVariable(...input)
  } catch (error) {
    if (isAppError(error, 'not_found'))
      throw notPossible('its project lacks the context variable that `verify` names')
    throw error
  }
}

const notPossible = (why: string): AppError =>
  new AppError('internal_server_error', `The webhook cannot be verified: ${why}`, {
    data: { byFunction: true },
  })

const bytesOf = ({
  'body-raw': raw = '',
  'body-bytes': encoded,
}: Parameters<Verification['finish']>[0]): Buffer =>
  encoded === undefined ? Buffer.from(raw) : Buffer.from(encoded, 'base64')
