import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import type { AppError } from '../../errors.ts'
import { newId } from '../../ids.ts'
import { errorBody, retryHeaders } from './problem.ts'
import { DEFAULT_HEADERS } from './replyHeaders.ts'

/** A refused client must read the reply within this time. */
const LINGER_MS = 2000

/** Sends the error body for input that never became a request, and closes the connection. */
export const refuseSocket = (socket: Socket, reason: AppError): void => {
  if (!socket.writable) return void socket.destroy()
  const request_id = newId()
  const body = JSON.stringify(errorBody(reason, request_id))
  const head = [
    `HTTP/1.1 ${reason.status} ${STATUS_CODES[reason.status]}`,
    `X-Request-Id: ${request_id}`,
    ...Object.entries({ ...DEFAULT_HEADERS, ...retryHeaders(reason) }).map(
      ([name, value]) => `${name}: ${value}`,
    ),
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Connection: close',
  ]
  socket.end([...head, '', body].join('\r\n'))
  setTimeout(() => socket.destroy(), LINGER_MS).unref() // a client may never close its side
}
