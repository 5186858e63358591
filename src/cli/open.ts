import { type CliCommand, command } from './command.ts'
import { dashboardPage } from './dashboardPage.ts'
import { WrongUsage } from './wrongUsage.ts'

/** Parses the path of a page. A path that leaves `/ui` would take the ticket to another page. */
const pageIn = (text: string): string => {
  const page = text.replace(/^\/+/, '')
  if (/^[A-Za-z0-9._~:@/-]*$/.test(page) && !page.split('/').some((part) => /^\.\.?$/.test(part))) return page
  throw new WrongUsage('expected the path of a page, such as runs/RUN_ID')
}

export const openCommand: CliCommand = command({
  name: 'open',
  summary: 'open the dashboard, signed in',
  description:
    'Prints a URL of the dashboard, and opens it in the browser on a terminal. The URL signs the browser in as the API key, ' +
    'once and within 60 seconds; it does not contain the key.',
  ofEnvironment: true,
  arguments: {
    page: { description: 'the page (default: the first one)', count: 'optional', parse: pageIn },
  },
  examples: ['svc open', 'svc open runs/RUN_ID', 'svc open --json'],
  async run({ args, environment, browse }) {
    const service = environment()
    const { ticket, expires_at } = await service.request('POST /v1/sign-in/tickets')
    const url = `${dashboardPage(service.url, args.page)}#ticket=${ticket}`
    browse(url)
    return { json: { url, expires_at }, text: `${url}\n` }
  },
})
