import { AppError } from '../errors.ts'
import { isId } from '../ids.ts'
import { CALL, CANCEL, REPLAY } from '../events/eventType.ts'
import { RawJson } from '../events/rawJson.ts'

/** The data of a control event, of which the form was checked. */
export type Control =
  | { readonly type: typeof CALL; readonly fn: string; readonly project: string | undefined }
  | { readonly type: typeof CANCEL | typeof REPLAY; readonly run_id: string }

/** Throws `bad_request` that names the field for a reserved type, or for data in another form. */
export const controlOf = (event_type: string, event_data: unknown): Control => {
  const data = event_data instanceof RawJson ? event_data.loose : event_data
  const fields = (typeof data === 'object' && data !== null ? data : {}) as Record<string, unknown>
  switch (event_type) {
    case CALL:
      return callIn(fields)
    case CANCEL:
    case REPLAY:
      return { type: event_type, run_id: idIn(fields) }
    default:
      throw new AppError(
        'bad_request',
        `event_type: names that begin with "svc:" are reserved; expected ${CALL}, ${CANCEL}, ${REPLAY} or a name of your own`,
      )
  }
}

const callIn = ({ fn, args, project }: Record<string, unknown>): Control => {
  if (typeof fn !== 'string')
    throw new AppError('bad_request', 'event_data.fn: expected a function reference "ns/var"')
  if (args !== undefined && !(args instanceof RawJson ? args.isList : Array.isArray(args)))
    throw new AppError('bad_request', 'event_data.args: expected an array')
  if (project !== undefined && typeof project !== 'string') throw noProject()
  return { type: CALL, fn, project }
}

/** Of a call to a project that does not exist, too. */
export const noProject = (): AppError =>
  new AppError('bad_request', 'event_data.project: expected the id or name of a project')

const idIn = ({ run_id }: Record<string, unknown>): string => {
  if (typeof run_id === 'string' && isId(run_id)) return run_id
  throw new AppError('bad_request', 'event_data.run_id: expected a UUID')
}
