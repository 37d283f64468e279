/** The entry point: starts the state, then renders the page. */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/variables.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/badges.css";
import "./styles/bar.css";
import "./styles/tables.css";
import "./styles/help.css";
import "./styles/overview.css";
import "./styles/session.css";
import "./styles/explanation.css";
import "./styles/history.css";
import "./styles/fleet.css";
import {
  eventSource,
  keepAddress,
  keepOrder,
  keepTitle,
  openFleet,
  readOptions,
  showsAll,
} from "./app";
import { listenForKeys } from "./keys";
import { startClock } from "./state/clock";
import { keepRoute } from "./state/route";
import { Page } from "./views/page";

keepRoute(readOptions);
keepAddress();
keepOrder();
keepTitle();
listenForKeys();
startClock(() => eventSource.reconnect());
void eventSource.start(showsAll, openFleet);

const page = document.getElementById("page");
if (page) render(<Page />, page);
