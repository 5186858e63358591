import type { Static } from 'typebox'
import type { StoredInput } from '../../commands/runs/readRunInput.ts'
import type { Payloads } from '../../content/payloads.ts'
import { isAppError } from '../../errors.ts'
import { StoredJson } from '../../events/rawJson.ts'
import type { RunInput } from '../schemas.ts'
import { presentRequest } from './runLogs.ts'

const CLEARED = { kind: null, event: null, value: null, cleared: true } as const

/** Returns the input of a run. A large value remains in the blobs. */
export const presentRunInput = async (
  run_id: string,
  input: StoredInput | null,
  payloads: Payloads,
): Promise<Static<typeof RunInput>> => {
  if (!input) return { run_id, ...CLEARED }
  const { kind, event = null } = input
  const shown = { run_id, kind: kind === 'tick' ? ('schedule' as const) : kind, event }
  try {
    return { ...shown, value: await valueOf(input, payloads), cleared: false }
  } catch (error) {
    if (!isAppError(error, 'not_found')) throw error // its retention period has ended
    return { ...shown, value: null, cleared: true }
  }
}

const valueOf = async ({ kind, payload, isCall }: StoredInput, payloads: Payloads): Promise<unknown> => {
  if (kind === 'webhook') return presentRequest(payload, payloads)
  const stored = payloads.stored(payload)
  const value = isCall
    ? argsIn(stored instanceof StoredJson ? await payloads.fieldsOf(stored) : stored)
    : stored
  if (value instanceof StoredJson) (await payloads.openJson(value)).close() // it must exist before the reply begins
  return value
}

const argsIn = (call: unknown): unknown => (call as { readonly args?: unknown } | null)?.args ?? []
