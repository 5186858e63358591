import type { RequestListener } from 'node:http'
import { arrivals } from '../../loops/slices.ts'

/**
 * Handles requests in the order in which they arrive, in the part of a turn of the event loop that `arrivals` gives them: clients may
 * send hundreds at once.
 */
export const arriving =
  (handle: RequestListener): RequestListener =>
  (request, response) => {
    const wait = arrivals.take()
    if (wait) void wait.then(() => request.socket.destroyed || handle(request, response))
    else handle(request, response)
  }
