/** Where the page begins. */

import { render } from "preact";
import "uplot/dist/uPlot.min.css";
import "./styles/tokens.css";
import "./styles/base.css";
import "./styles/frame.css";
import "./styles/signs.css";
import "./styles/bar.css";
import "./styles/tables.css";
import "./styles/help.css";
import "./styles/overview.css";
import "./styles/session.css";
import "./styles/history.css";
import { followOrder, followTitle, live } from "./app";
import { followKeys } from "./keys";
import { startClock } from "./state/clock";
import { followRoute } from "./state/route";
import { Shell } from "./views/shell";

followRoute();
followOrder();
followTitle();
followKeys();
startClock(() => live.again());
live.start();

const page = document.getElementById("page");
if (page) render(<Shell />, page);
