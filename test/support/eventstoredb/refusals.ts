import { Metadata, type ServiceError, status } from '@grpc/grpc-js'

/** The errors of refused calls. The client distinguishes them by `exception` and reads its fields. */
export class Refusal extends Error implements ServiceError {
  readonly code: status
  readonly details: string
  readonly metadata = new Metadata()

  constructor(
    code: status,
    details: string,
    exception?: string,
    fields: Readonly<Record<string, string | number>> = {},
  ) {
    super(details)
    this.code = code
    this.details = details
    if (exception) this.metadata.set('exception', exception)
    for (const [name, value] of Object.entries(fields)) this.metadata.set(name, asciiOf(String(value)))
  }
}

/** Trailers may contain only ASCII. */
const asciiOf = (text: string): string => text.replace(/[^ -~]+/g, encodeURIComponent)

export const tombstoned = (stream: string): Refusal =>
  new Refusal(status.FAILED_PRECONDITION, `Event stream '${stream}' is deleted.`, 'stream-deleted', {
    'stream-name': stream,
  })

/** The error of a deletion. An append has its own message. */
export const wrongVersion = (stream: string, expected: number, actual: number): Refusal =>
  new Refusal(
    status.FAILED_PRECONDITION,
    `Delete failed due to WrongExpectedVersion. Stream: ${stream}, Expected version: ${expected}, Actual version: ${actual}`,
    'wrong-expected-version',
    { 'stream-name': stream, 'expected-version': expected, 'actual-version': actual },
  )

export const tooLarge = (limit: number): Refusal =>
  new Refusal(
    status.INVALID_ARGUMENT,
    `Maximum Append Size of ${limit} Exceeded.`,
    'maximum-append-size-exceeded',
    { 'maximum-append-size': limit },
  )

export const badArgument = (details: string): Refusal => new Refusal(status.INVALID_ARGUMENT, details)

/** The server's reply to errors that it does not expect, such as an invalid regular expression. */
export const handlerThrew = (): Refusal => new Refusal(status.UNKNOWN, 'Exception was thrown by handler.')

export const unexpectedResult = (what: string, result: string): Refusal =>
  new Refusal(status.UNKNOWN, `Unexpected ${what}: ${result}`)

export const notReady = (): Refusal => new Refusal(status.UNAVAILABLE, 'Server Is Not Ready')

export const commitTimeout = (): Refusal =>
  new Refusal(status.ABORTED, 'Operation timed out: Commit phase timeout')

export const notLeader = (host: string, port: number): Refusal =>
  new Refusal(status.NOT_FOUND, 'Leader info available', 'not-leader', {
    'leader-endpoint-host': host,
    'leader-endpoint-port': port,
  })

interface GroupName {
  readonly stream: string
  readonly group: string
}

const ofGroup = (code: status, details: string, exception: string, { stream, group }: GroupName): Refusal =>
  new Refusal(code, details, exception, { 'stream-name': stream, 'group-name': group })

export const groupExists = (name: GroupName): Refusal =>
  ofGroup(
    status.ALREADY_EXISTS,
    `Subscription group ${name.group} on stream ${name.stream} exists.`,
    'persistent-subscription-exists',
    name,
  )

export const groupMissing = (name: GroupName): Refusal =>
  ofGroup(
    status.NOT_FOUND,
    `Subscription group ${name.group} on stream ${name.stream} does not exist.`,
    'persistent-subscription-does-not-exist',
    name,
  )

export const groupDropped = (name: GroupName): Refusal =>
  ofGroup(
    status.CANCELLED,
    `Subscription group ${name.group} on stream ${name.stream} was dropped.`,
    'persistent-subscription-dropped',
    name,
  )

export const groupFull = (name: GroupName): Refusal =>
  ofGroup(
    status.FAILED_PRECONDITION,
    `Maximum subscriptions reached for subscription group ${name.group} on stream ${name.stream}.`,
    'maximum-subscribers-reached',
    name,
  )
