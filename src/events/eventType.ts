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

/** Throws `bad_request` for what is no event type. Any characters are allowed (SPEC.md, Event). */
export const checkEventType = (event_type: string): void => {
  const { length } = event_type
  if (length >= 1 && length <= MAX_EVENT_TYPE) return
  throw new AppError('bad_request', `event_type: expected 1 to ${MAX_EVENT_TYPE} characters, got ${length}`)
}
