import { AppError } from '../errors.ts'

/** Characters of an event type. */
export const MAX_EVENT_TYPE = 256

/** Types that begin with this are reserved for control events. */
const RESERVED = 'svc:'

/** Events with which clients and functions control runs (DESIGN.md, A build). */
export const CALL = 'svc:call'
export const CANCEL = 'svc:cancel'
export const REPLAY = 'svc:replay'

/** Whether the type is reserved for control events. */
export const isControl = (event_type: string): boolean => event_type.startsWith(RESERVED)

const CONTROL = '\\u0000-\\u001f\\u007f-\\u009f'
const HAS_CONTROL = new RegExp(`[${CONTROL}]`)
/** The rules of `checkEventType` for the OpenAPI document. */
export const EVENT_TYPE_RULES = { pattern: `^[^${CONTROL}]+$`, maxLength: MAX_EVENT_TYPE }

/** Throws `bad_request` for an invalid event type: each character is allowed except control characters. */
export const checkEventType = (event_type: string): void => checkTypeName('event_type', event_type)

/** The rule for types of events and of live data, from clients and functions. Control characters could forge log lines. */
export const checkTypeName = (field: string, text: string): void => {
  const expected = (what: string) => new AppError('bad_request', `${field}: expected ${what}`)
  const { length } = text
  if (length < 1 || length > MAX_EVENT_TYPE)
    throw expected(`1 to ${MAX_EVENT_TYPE} characters, got ${length}`)
  if (HAS_CONTROL.test(text)) throw expected('no control character')
  if (!text.isWellFormed()) throw expected('valid Unicode')
}
