import Type from 'typebox'
import { readPages } from '../docs/pages.ts'
import { searchPages } from '../docs/searchPages.ts'
import { type ApiTool, apiTool } from './tool.ts'

export const docsTools: readonly ApiTool[] = [
  apiTool({
    name: 'docs_search',
    title: 'Search the documentation',
    description:
      'Searches the documentation of svc: how to write functions, the command line, the API, operation, guarantees. Returns ' +
      'the best sections as Markdown, with the path of their page on this service.',
    needs: [],
    readOnly: true,
    input: Type.Object({
      query: Type.String({ minLength: 1, maxLength: 200, description: 'A few words' }),
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 20, default: 5 })),
    }),
    call: async (_, { query, limit = 5 }) => ({ results: searchPages(await readPages(), query, limit) }),
  }),
]
